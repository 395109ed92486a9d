"""The verifier: does a patch resolve its task? It decides by the rule of SWE-bench, in a sandbox of its own."""

from gumshoe.env.verifier.grade import Grade, grade, grade_all, grade_of
from gumshoe.env.verifier.judge import Verdict
from gumshoe.env.verifier.rules import without_tests
from gumshoe.env.verifier.verifier import Verifier, VerifierAhead, verify

__all__ = ["Grade", "Verdict", "Verifier", "VerifierAhead", "grade", "grade_all", "grade_of", "verify", "without_tests"]

"""The verifier: does a patch resolve its task? It decides by the rule of SWE-bench, in sandboxes of its own.

    original repository ──> variants     the tests, rewritten so that each is true in one variant and false in the other
                               │
    patch ──> repository <─────┤         twice, each in a fresh sandbox; tests and what configures them are put back
      │           │            │
      │           └──> judge <─┘         tests must pass where they are true, and fail where they are false
      └──> gate ──────> │                what the patch adds that no run can vouch for
                        └──> Verdict ──> Grade

| module | what it does |
|---|---|
| `verifier` | carries out the above; `verify` and `grade` are the doors |
| `verdict` | what became of a patch |
| `repository` | the original repository in a sandbox: applies a patch, runs the tests |
| `rules` | which files of a patch are put back |
| `variants` | the two variants of the tests, which `env/inside/verdict` writes |
| `judge` | from outcomes to a verdict |
| `gate`, `gate_uses` | finds what lets code find out how it is tested |
| `trees` | syntax trees, also of Python that only the project's own interpreter can parse |
| `proof` | which tests can be made to fail once a repository is repaired |
| `check` | shows that tasks are sound, before anybody works on them |
"""

from gumshoe.env.verifier.rules import without_tests
from gumshoe.env.verifier.verdict import Grade, Verdict, grade_of
from gumshoe.env.verifier.verifier import Verifier, grade, grade_all, verify

__all__ = [
    "Grade",
    "Verdict",
    "Verifier",
    "grade",
    "grade_all",
    "grade_of",
    "verify",
    "without_tests",
]

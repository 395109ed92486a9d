"""Our own grader: does a patch resolve its task? It decides by the rule of SWE-bench, in a sandbox of its own."""

from gumshoe.env.grading.grade import Grade, grade, grade_all
from gumshoe.env.grading.strip import without_tests

__all__ = ["Grade", "grade", "grade_all", "without_tests"]

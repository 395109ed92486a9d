"""What the tests said of a patch: one line, and results from before it was written down."""

from __future__ import annotations

import json

import pytest

from gumshoe.env.verifier.judge import judge
from gumshoe.eval.grading.grader import describe_run, describe_verdict
from gumshoe.eval.records import Result
from gumshoe.protocols import ExecResult
from gumshoe.records import Oracle, TestOutcome, TestRun


def run(code: int, *, late: bool = False, **outcomes: str) -> TestRun:
    result = ExecResult(exit_code=code, output="", duration_s=20, timed_out=late)
    return TestRun(
        result=result,
        outcomes=tuple(TestOutcome.model_validate({"id": name, "outcome": one}) for name, one in outcomes.items()),
    )


@pytest.mark.parametrize(
    ("ended", "line"),
    [
        (run(0, a="passed", b="xfailed", c="skipped"), "2 tests pass"),
        (run(0, a="passed"), "1 test passes"),
        (run(0), "the tests pass"),
        (run(1), "the tests end with exit code 1"),
        (run(1, late=True), "the tests run for more than 20 s"),
        (run(1, a="failed", b="error", c="passed"), "2 of 3 tests fail: a, b"),
        (run(1, a="failed", b="failed", c="failed", d="failed", e="failed"), "5 of 5 tests fail: a, b, c and 2 more"),
    ],
)
def test_a_run_in_one_line(ended: TestRun, line: str) -> None:
    assert describe_run(ended) == line


def test_the_tests_that_count_are_told_apart() -> None:
    oracle = Oracle(task_id="t", gold_patch="", fail_to_pass=("a", "b"), pass_to_pass=("c",))

    def said(ended: TestRun) -> str:
        return describe_verdict(judge(ended, oracle))

    assert said(run(0, a="passed", b="passed", c="passed")) == "3 tests pass"
    assert said(run(1, a="passed", b="passed", c="passed", d="failed")) == "the tests that count pass"
    assert said(run(1, a="passed", b="failed", c="failed")) == "1 still fail: b; 1 that passed before fail: c"
    assert said(run(1, late=True, c="passed")) == "the tests run for more than 20 s; 2 still fail: a, b"


def test_results_from_before_are_read() -> None:
    old = {"arm": "a", "task_id": "t", "sample": 0, "split": "all", "trajectory": "", "stop": None, "scores": {}}
    assert Result.model_validate_json(json.dumps(old)).tests == ""

"""What the tests said about a patch, in one line."""

from __future__ import annotations

from collections.abc import Sequence

from gumshoe.env.verifier.judge import Verdict
from gumshoe.records import TestRun

__all__ = ["describe_run", "describe_verdict"]

SHOWN = 3
"""How many failing tests are named."""


def describe_run(run: TestRun) -> str:
    """How one run of the tests ended, whichever of them count."""
    failing = [one.id for one in run.outcomes if one.outcome in ("failed", "error")]
    if failing:
        return _named(failing, f"of {len(run.outcomes)} tests fail")
    if run.result.timed_out:
        return f"the tests run for more than {run.result.duration_s:.0f} s"
    if not run.passed:
        return f"the tests end with exit code {run.result.exit_code}"
    count = sum(one.passed for one in run.outcomes)
    return "the tests pass" if count == 0 else "1 test passes" if count == 1 else f"{count} tests pass"


def describe_verdict(verdict: Verdict) -> str:
    """How the tests that count ended, with those to be fixed first."""
    if verdict.resolved:
        return describe_run(verdict.run) if verdict.run.passed else "the tests that count pass"
    parts = [
        _named(tests, what)
        for tests, what in (
            (verdict.failing_fail_to_pass, "still fail"),
            (verdict.failing_pass_to_pass, "that passed before fail"),
        )
        if tests
    ]
    return "; ".join([*verdict.problems, *parts])


def _named(tests: Sequence[str], what: str) -> str:
    more = f" and {len(tests) - SHOWN} more" if len(tests) > SHOWN else ""
    return f"{len(tests)} {what}: {', '.join(tests[:SHOWN])}{more}"

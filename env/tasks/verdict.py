"""When a task is resolved: the official rule of SWE-bench.

All tests that should pass now do, and all that passed before still do. A test that did not run has failed. A skipped
test counts as failed where it should have been repaired, and does no harm where it only should not break.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gumshoe.protocols import TestRun
from gumshoe.records import Oracle, TestOutcome

__all__ = ["Verdict", "judge"]


@dataclass(frozen=True)
class Verdict:
    """The tests of the oracle that are not as they should be; none of them means resolved.

    `by_exit_code` is set where the oracle names no tests: then only the end of the whole run decides.
    """

    failing_fail_to_pass: tuple[str, ...] = ()
    failing_pass_to_pass: tuple[str, ...] = ()
    by_exit_code: bool = False
    run_passed: bool = True

    @property
    def resolved(self) -> bool:
        if self.by_exit_code:
            return self.run_passed
        return not (self.failing_fail_to_pass or self.failing_pass_to_pass)


def judge(run: TestRun, oracle: Oracle) -> Verdict:
    """The verdict on one run of the entrypoint."""
    outcomes = {outcome.id: outcome for outcome in run.outcomes}
    return Verdict(
        failing_fail_to_pass=tuple(_failing(oracle.fail_to_pass, outcomes, skipped_counts=True)),
        failing_pass_to_pass=tuple(_failing(oracle.pass_to_pass, outcomes, skipped_counts=False)),
        by_exit_code=not (oracle.fail_to_pass or oracle.pass_to_pass),
        run_passed=run.passed,
    )


def _failing(tests: Iterable[str], outcomes: dict[str, TestOutcome], *, skipped_counts: bool) -> Iterable[str]:
    for test in tests:
        found = _outcomes_of(test, outcomes)
        good = [outcome.passed or (outcome.outcome == "skipped" and not skipped_counts) for outcome in found]
        if not good or not all(good):
            yield test


def _outcomes_of(test: str, outcomes: dict[str, TestOutcome]) -> list[TestOutcome]:
    """The outcome of a test. Published lists cut some parametrized ids short: such an id stands for all it begins."""
    if test in outcomes or "[" not in test or test.endswith("]"):
        return [outcomes[test]] if test in outcomes else []
    return [outcome for name, outcome in outcomes.items() if name.startswith(test)]

"""When a task is resolved: the official rule of SWE-bench.

All tests that should pass now do, and all that passed before still do. A test that did not run has failed. A skipped
test counts as failed where it should have been repaired, and does no harm where it only should not break.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from gumshoe.protocols import TestRun
from gumshoe.records import Oracle, TestOutcome

__all__ = ["Verdict", "judge"]

DJANGO = re.compile(r"^(\w+) \(([\w.]+)\)$")


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
    seen = Outcomes(run.outcomes)
    return Verdict(
        failing_fail_to_pass=tuple(_failing(oracle.fail_to_pass, seen, skipped_counts=True)),
        failing_pass_to_pass=tuple(_failing(oracle.pass_to_pass, seen, skipped_counts=False)),
        by_exit_code=not (oracle.fail_to_pass or oracle.pass_to_pass),
        run_passed=run.passed,
    )


def _failing(tests: Iterable[str], seen: Outcomes, *, skipped_counts: bool) -> Iterable[str]:
    for test in tests:
        found = seen.of(test)
        good = [outcome.passed or (outcome.outcome == "skipped" and not skipped_counts) for outcome in found]
        if not good or not all(good):
            yield test


class Outcomes:
    """What became of the tests of a run, by the names that published lists give them.

    A name is the test's id; or one cut short in its parameters, which stands for all it begins; or, as Django's
    runner prints it, `method (place)`; or a name without a file (`test_a`, `TestB.test_c`), which stands for every
    test that is called so.
    """

    def __init__(self, outcomes: Iterable[TestOutcome]) -> None:
        self._by_id = {outcome.id: outcome for outcome in outcomes}
        self._by_name: dict[str, list[TestOutcome]] = {}
        for outcome in self._by_id.values():
            self._by_name.setdefault(".".join(outcome.id.split("::")[1:]), []).append(outcome)

    def of(self, test: str) -> list[TestOutcome]:
        """The outcomes that a name stands for; none for a test that did not run."""
        if test in self._by_id:
            return [self._by_id[test]]
        if test.count("[") > test.count("]"):
            return [outcome for name, outcome in self._by_id.items() if name.startswith(test)]
        django = DJANGO.match(test)
        if django:
            method, place = django.groups()
            names = (f"{place}.{method}", place)
            return [self._by_id[name] for name in names if name in self._by_id and name.endswith(method)]
        return [] if "::" in test else self._by_name.get(test, [])

"""When a task is resolved: the official rule of SWE-bench, on a run that can be trusted.

All tests that should pass now do, and all that passed before still do. A test that did not run has failed. A skipped
test counts as failed where it should have been repaired, and does no harm where it only should not break.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gumshoe.env.verifier.reports import CheckedRun
from gumshoe.records import Oracle, TestOutcome, TestRun

__all__ = ["NamedOutcomes", "Verdict", "judge", "known_tests"]

DJANGO = re.compile(r"^(\w+) \(([\w.]+)\)$")
PROGRESS = re.compile(r"\[\s*\d+%\]")
"""What the official parser takes for a test in the progress that pytest prints; some published lists hold it."""
OPTION = re.compile(r"(.*?)\[(.*)\]")
NO_TESTS = "no test is known that decides"


@dataclass(frozen=True)
class Verdict:
    """What became of one patch.

    Attributes:
        run: the run of the tests, for those who want to show it.
        failing_fail_to_pass, failing_pass_to_pass: the tests that are not as they should be.
        problems: why the run proves nothing; with a problem nothing is resolved.
        restored: files of the patch that were put back as they were originally, because they configure the tests.
        tampering: what was tried, as facts: files that were put back, changes to the test runner, processes left.
        unusable: the tests were not run, since the task is broken or the patch does not apply.
    """

    run: TestRun
    failing_fail_to_pass: tuple[str, ...] = ()
    failing_pass_to_pass: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    restored: tuple[str, ...] = ()
    tampering: tuple[str, ...] = ()
    unusable: bool = False

    @property
    def resolved(self) -> bool:
        """Whether all tests that count passed, and nothing was tampered with."""
        return not (self.failing_fail_to_pass or self.failing_pass_to_pass or self.problems)

    @property
    def explanation(self) -> str:
        """Why it is not resolved, in one line; empty where it is."""
        failing = (*self.failing_fail_to_pass, *self.failing_pass_to_pass)
        more = f" and {len(failing) - 3} more" if len(failing) > 3 else ""
        named = [f"failing: {', '.join(failing[:3])}{more}"] if failing else []
        return "; ".join([*self.problems[:3], *named])


def judge(checked: CheckedRun, expected: Oracle, restored: tuple[str, ...] = ()) -> Verdict:
    """The verdict on one run.

    Args:
        checked: the run.
        expected: names the tests that decide: those of the task's oracle, or the known ones (`known_tests`).
        restored: files that were put back before the run.
    """
    seen = NamedOutcomes(checked.run.outcomes)
    nothing = () if expected.fail_to_pass or expected.pass_to_pass else (NO_TESTS,)
    put_back = (f"test configuration put back: {path}" for path in restored)
    return Verdict(
        run=checked.run,
        failing_fail_to_pass=tuple(_failing(expected.fail_to_pass, seen, skipped_counts=True)),
        failing_pass_to_pass=tuple(_failing(expected.pass_to_pass, seen, skipped_counts=False)),
        problems=(*checked.problems, *nothing),
        restored=restored,
        tampering=(*put_back, *checked.tampering),
    )


def known_tests(before: CheckedRun, task_id: str) -> Oracle:
    """The tests that decide where no oracle names any: those of the original repository.

    What fails there is to pass, a file that cannot be loaded stands for all of its tests, and what passes is to stay.
    """
    outcomes = before.run.outcomes
    failing = [one.id for one in outcomes if one.outcome in ("failed", "error")]
    passing = [one.id for one in outcomes if one.passed]
    files = [name for name in before.broken if name.endswith(".py")]
    return Oracle(task_id=task_id, gold_patch="", fail_to_pass=(*failing, *files), pass_to_pass=tuple(passing))


def _failing(tests: Iterable[str], seen: NamedOutcomes, *, skipped_counts: bool) -> Iterable[str]:
    for test in tests:
        if PROGRESS.fullmatch(test):
            continue
        found = seen.of(test)
        good = [outcome.passed or (outcome.outcome == "skipped" and not skipped_counts) for outcome in found]
        if not good or not all(good):
            yield test


class NamedOutcomes:
    """What became of the tests of a run, by the names that published lists give them.

    A name is the test's id; or the id up to its first space; or one cut short in its parameters, which stands for all
    that begin with it; or one whose parameter is a path without its folders; or, as Django's runner prints it,
    `method (place)` or the first line of the docstring; or a name without a file (`test_a`, `TestB.test_c`), which
    stands for every test with that name; or a file, which stands for all of its tests.
    """

    def __init__(self, outcomes: Iterable[TestOutcome]) -> None:
        self._by_id: dict[str, TestOutcome] = {}
        self._by_name: dict[str, list[TestOutcome]] = {}
        for outcome in outcomes:
            self._by_id[outcome.id] = outcome
            for name in _other_names(outcome):
                self._by_name.setdefault(name, []).append(outcome)

    def of(self, test: str) -> list[TestOutcome]:
        """The outcomes that a name stands for; none for a test that did not run."""
        if test in self._by_id:
            return [self._by_id[test]]
        django = DJANGO.match(test)
        if django:
            method, place = django.groups()
            names = (f"{place}.{method}", place)
            found = [self._by_id[name] for name in names if name in self._by_id and name.endswith(method)]
            if found:
                return found
        if test.count("[") > test.count("]"):
            return _starting(self._by_id, test)
        if test in self._by_name:
            return self._by_name[test]
        return _starting(self._by_id, f"{test}::") if test.endswith(".py") else []


def _other_names(outcome: TestOutcome) -> set[str]:
    """The names by which published lists know a test, besides its id."""
    names = {outcome.id.split(" ")[0], outcome.title.strip()}
    if "::" in outcome.id:
        names.add(".".join(outcome.id.split("::")[1:]))
    option = OPTION.search(outcome.id)
    if option and option[2].startswith("/") and not option[2].startswith("//") and "*" not in option[2]:
        names.add(f"{option[1]}[/{option[2].rpartition('/')[2]}]")
    if "MouseButton." in outcome.id:
        names.add(outcome.id.replace("MouseButton.LEFT", "1").replace("MouseButton.RIGHT", "3"))
    return names - {"", outcome.id}


def _starting(outcomes: Mapping[str, TestOutcome], start: str) -> list[TestOutcome]:
    return [outcome for name, outcome in outcomes.items() if name.startswith(start)]

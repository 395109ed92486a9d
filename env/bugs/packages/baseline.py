"""The baseline stage: which tests of a package pass, each time, quickly, and without a network."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gumshoe.cache import FolderCache
from gumshoe.env.bugs.config import HarvestConfig
from gumshoe.env.bugs.packages import PackageHarvest, stage_folder, stage_key
from gumshoe.env.bugs.packages.environment import Built
from gumshoe.env.bugs.projects import Suite, open_runner, reason_of
from gumshoe.errors import TaskError
from gumshoe.records import FAILING, PASSING, TestRun
from gumshoe.text import plural

DURATION = re.compile(r"^(\d+\.\d+)s (setup|call|teardown)\s+(\S.*)$", re.MULTILINE)
MEASURED_FROM_S = "0.05"
HANGING = 4
SETTLING_ROUNDS = 4
# What an attempt to reach a host by name or address reports in a sandbox without a network.
NO_NETWORK = re.compile(r"name resolution|Name or service not known|Network is unreachable|gaierror")
# A task's command may take this many times what the clean tests take, and at least this many seconds.
COMMAND_FACTOR, COMMAND_S = 8.0, 60.0
# With a bug in the project, one run of the tests may take this many times what the clean tests take, and at least
# `bug_run_s`: on a busy machine, a one-second suite was seen to take ten. An endless loop is ended earlier, by its
# processor time.
BUG_RUN_FACTOR = 5.0


def command_limit(clean_s: float) -> float:
    """Seconds that a task's command may take when the clean tests take `clean_s`."""
    return max(COMMAND_S, COMMAND_FACTOR * clean_s)


def bug_run_limit(config: HarvestConfig, clean_s: float) -> float:
    """Seconds that a run of the tests with a bug may take when the clean tests take `clean_s`."""
    return max(config.bug_run_s, BUG_RUN_FACTOR * clean_s)


@dataclass(frozen=True)
class Baseline:
    """The tests that count, and why the others do not.

    Attributes:
        arguments: pytest's: those of the suite, and those that keep the tests that do not count from being run.
        passing: ids of the tests that count.
        deselected: test, function or file to the reason: "fails", "fails without the others", "flaky", "hangs", "needs
            a network", "not collected", "parameters differ between runs", "slow", "too long together", "N tests" (of a
            function with too many) or "beside too many of these" (in a file that is left out whole); if a limit is the
            reason, with its name. `without` adds reasons of its own.
        seconds: what one run of the tests that count takes.
    """

    arguments: tuple[str, ...]
    passing: tuple[str, ...]
    deselected: dict[str, str]
    seconds: float

    def without(self, tests: Iterable[str], reason: str) -> Baseline:
        """The baseline with more tests deselected."""
        left_out = dict.fromkeys(tests, reason)
        return Baseline(
            (*self.arguments, *(f"--deselect={test}" for test in left_out)),
            tuple(test for test in self.passing if test not in left_out),
            {**self.deselected, **left_out},
            self.seconds,
        )


def get_baseline(package: PackageHarvest, built: Built, environment: str) -> Baseline:
    """What is kept of a package's tests, found if nothing is; `environment` is the key of that stage.

    Raises TaskError as `find_baseline` does.
    """
    config = package.config
    suite = Suite(built.lock.name, built.arguments)
    key = stage_key(environment, built.lock.name, built.arguments, config.baseline.model_dump(), config.sandbox.kind)
    cache = FolderCache(stage_folder("baseline"), Baseline)
    return cache.find(key, lambda folder: find_baseline(package, built.project, suite))


def find_baseline(package: PackageHarvest, project: Path, suite: Suite) -> Baseline:
    """Runs the tests of a package in a sandbox without network and drops those that no verdict can rest on.

    Raises TaskError when too few are left, with the message of the first that failed.
    """
    task = suite.task(f"harvest/{package.name}", str(project))
    with open_runner(task, package.config.sandbox, package.config.baseline.run_timeout_s) as run_tests:
        return BaselineFinder(package, suite, run_tests).find()


Outcomes = Mapping[str, str]
"""The outcome of each test of one run."""


class BaselineFinder:
    """Runs all tests several times, then those that count, until these pass."""

    def __init__(self, package: PackageHarvest, suite: Suite, run_tests: Callable[[Sequence[str]], TestRun]) -> None:
        self._config = package.config.baseline
        self._say = package.say
        self._suite = suite
        self._run_tests = run_tests
        self._runs: list[Outcomes] = []
        self._messages: dict[str, str] = {}
        self._seconds: dict[str, float] = {}
        self._hanging: list[str] = []
        self._dropped: dict[str, str] = {}

    def find(self) -> Baseline:
        """The baseline. Raises TaskError."""
        outputs: list[str] = []
        for number in range(self._config.runs):
            self._say(f"run {number + 1} of the tests")
            outputs.append(self._run_all())
        if not self._runs[0]:
            raise TaskError(f"no tests were run: {reason_of(outputs[-1])}")
        self._drop_unfit()
        self._drop_slowest()
        self._drop_longest_lists()
        self._require_enough()
        return self._settle()

    def _run(self, arguments: Iterable[str]) -> TestRun:
        measured = ("--durations=0", f"--durations-min={MEASURED_FROM_S}", *arguments)
        return self._run_tests((*self._suite.entrypoint, *measured))

    def _run_all(self) -> str:
        """Runs everything and returns what is printed; a test that hangs is left out and the run repeated.

        Raises TaskError.
        """
        for _ in range(HANGING):
            left_out = [f"--deselect={test}" for test in self._hanging]
            run = self._run(["--continue-on-collection-errors", *left_out])
            if not run.result.timed_out:
                self._take_in(run)
                return run.result.output
            stuck = next((one.id for one in run.outcomes if one.outcome == "timed_out"), None)
            if stuck is None:
                break
            self._hanging.append(stuck)
        raise TaskError(f"its tests take more than {self._config.run_timeout_s:g} s (baseline.run_timeout_s)")

    def _take_in(self, run: TestRun) -> None:
        """Keeps the outcomes of a run, and the last message and the longest time of each test."""
        self._runs.append(_outcomes(run))
        self._messages |= {outcome.id: outcome.message for outcome in run.outcomes if outcome.message}
        spent: dict[str, float] = {}
        for seconds, _, test in DURATION.findall(run.result.output):
            # Tests that set the clock make pytest measure years.
            if float(seconds) <= run.result.duration_s:
                spent[test] = spent.get(test, 0.0) + float(seconds)
        for test, seconds in spent.items():
            self._seconds[test] = max(seconds, self._seconds.get(test, 0.0))

    @property
    def _tests(self) -> list[str]:
        """All tests that were seen."""
        return list(dict.fromkeys(test for outcomes in self._runs for test in outcomes))

    @property
    def _kept(self) -> list[str]:
        """The tests that are not dropped."""
        return [test for test in self._tests if not self._is_dropped(test)]

    def _is_dropped(self, test: str) -> bool:
        """Whether a test is dropped, on its own or with its function or file."""
        return not self._dropped.keys().isdisjoint((test, _function(test), test.partition("::")[0]))

    @property
    def _by_file(self) -> dict[str, list[str]]:
        """All tests that were seen, by the files that they are in."""
        files: dict[str, list[str]] = {}
        for test in self._tests:
            files.setdefault(test.partition("::")[0], []).append(test)
        return files

    def _drop_unfit(self) -> None:
        """Drops the tests that fail, are not the same in each run, or take long."""
        changing = _changing(self._runs)
        self._dropped = {**dict.fromkeys(self._hanging, "hangs (baseline.run_timeout_s)"), **changing}
        for test in self._tests:
            reason = self._why_unfit(test)
            if reason and _function(test) not in changing:
                self._dropped[test] = reason

    def _why_unfit(self, test: str) -> str:
        seen = {outcomes.get(test) for outcomes in self._runs}
        if not seen.intersection(FAILING) and None not in seen:
            return "slow (baseline.slow_test_s)" if self._seconds.get(test, 0.0) > self._config.slow_test_s else ""
        if len(seen) > 1:
            return "flaky"
        if "::" not in test:
            return "not collected"
        return "needs a network" if NO_NETWORK.search(self._messages.get(test, "")) else "fails"

    def _drop_slowest(self) -> None:
        """Drops the slowest tests until the others are fast enough together."""
        kept = {*self._kept}
        left = {test: seconds for test, seconds in self._seconds.items() if test in kept}
        total = sum(left.values())
        for test in sorted(left, key=lambda test: -left[test]):
            if total <= self._config.suite_s:
                break
            self._dropped[test] = "too long together (baseline.suite_s)"
            total -= left[test]

    def _drop_longest_lists(self) -> None:
        """Drops the functions with the most parameters until few enough tests remain.

        A function goes as a whole, since pytest deselects by the beginning of an id.
        """
        count = Counter(map(_function, self._kept))
        for function, tests in count.most_common():
            if count.total() <= self._config.max_tests:
                break
            self._dropped[function] = f"{tests} tests (baseline.max_tests)"
            del count[function]

    def _require_enough(self) -> None:
        """Refuses a package with too few tests. Raises TaskError."""
        first = self._runs[0]
        left = [test for test, outcome in first.items() if outcome in PASSING and not self._is_dropped(test)]
        if len(left) >= self._config.min_tests:
            return
        failed = [
            test
            for test, reason in self._dropped.items()
            if reason in ("fails", "needs a network", "not collected") and test in self._messages
        ]
        because = f"; {failed[0]}: {self._messages[failed[0]].splitlines()[0]}" if failed else ""
        needed = f"{self._config.min_tests} are needed (baseline.min_tests)"
        raise TaskError(f"{len(left)} of its {len(first)} tests are usable, {needed}{because}")

    def _settle(self) -> Baseline:
        """Runs what is left until it passes twice in a row: tests may need others that are gone. Raises TaskError."""
        output = ""
        for _ in range(SETTLING_ROUNDS):
            self._drop_whole_files()
            arguments = tuple(self._arguments())
            self._say(f"run without {plural(len(self._dropped), 'test')}")
            runs = [self._run(arguments), self._run(arguments)]
            broken = self._broken(*map(_outcomes, runs))
            if not broken:
                return self._baseline(runs, arguments)
            output = runs[0].result.output
            self._dropped |= broken
        raise TaskError(f"its tests do not stabilize: {reason_of(output)}")

    def _drop_whole_files(self) -> None:
        """Drops the rest of the files most of whose tests are dropped: a command has a size limit."""
        files = self._by_file
        while len(self._arguments()) > self._config.max_deselected:
            left = {file: [test for test in tests if not self._is_dropped(test)] for file, tests in files.items()}
            mixed = [file for file in files if left[file] and len(left[file]) < len(files[file])]
            if not mixed:
                break
            fullest = max(mixed, key=lambda file: len(files[file]) - len(left[file]))
            self._dropped |= dict.fromkeys(left[fullest], "beside too many of these (baseline.max_deselected)")

    def _arguments(self) -> list[str]:
        """Pytest's options that leave out what is dropped; a file whose tests all go is left out as a whole."""
        whole = {file for file, tests in self._by_file.items() if all(map(self._is_dropped, tests))}
        whole |= {test for test in self._dropped if "::" not in test}
        singles = [test for test in self._dropped if test.partition("::")[0] not in whole]
        return [*(f"--ignore={file}" for file in sorted(whole)), *(f"--deselect={test}" for test in singles)]

    def _broken(self, first: Outcomes, second: Outcomes) -> dict[str, str]:
        """What else does not count, as two runs without the tests that are dropped show, each with the reason."""
        changing = _changing([first, second])
        broken = {test: "fails without the others" for test, outcome in first.items() if outcome in FAILING}
        broken |= {test: "flaky" for test in first.keys() | second.keys() if first.get(test) != second.get(test)}
        broken = {test: why for test, why in broken.items() if _function(test) not in changing} | changing
        # What still fails although it is deselected is not a test, but a class or a file that cannot be collected.
        again = broken.keys() & self._dropped.keys()
        return broken | {test.partition("::")[0]: "not collected" for test in again if "::" in test}

    def _baseline(self, runs: Sequence[TestRun], arguments: tuple[str, ...]) -> Baseline:
        """The baseline that equal runs show in which no test fails. Raises TaskError where they show none."""
        passing = tuple(test for test, outcome in _outcomes(runs[0]).items() if outcome in PASSING)
        least = self._config.min_tests
        if len(passing) < least:
            raise TaskError(f"only {len(passing)} tests pass, and {least} are needed (baseline.min_tests)")
        for run in runs:
            if not run.passed:
                why = f"exit code {run.result.exit_code}: {reason_of(run.result.output)}"
                raise TaskError(f"no test fails, but pytest ends with {why}")
        seconds = min(run.result.duration_s for run in runs)
        return Baseline((*self._suite.arguments, *arguments), passing, self._dropped, seconds)


def _outcomes(run: TestRun) -> Outcomes:
    return {outcome.id: outcome.outcome for outcome in run.outcomes}


def _changing(runs: Sequence[Outcomes]) -> dict[str, str]:
    """The functions whose tests have different ids in another run, such as when the parameters come from a set.

    All of them are dropped: an id that was in each of these runs may be another test's in the next.
    """
    ids = dict.fromkeys(test for outcomes in runs for test in outcomes if "[" in test)
    absent = (test for test in ids if any(test not in outcomes for outcomes in runs))
    return dict.fromkeys(map(_function, absent), "parameters differ between runs")


def _function(test: str) -> str:
    """A test's id without its parameters, which may hold anything."""
    return test.partition("[")[0]

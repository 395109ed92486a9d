"""The baseline stage: which tests of a package pass, each time, quickly, and without a network."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from gumshoe.env.bugs.config import BaselineConfig, HarvestConfig
from gumshoe.env.bugs.packages.requirements import reason_of
from gumshoe.env.bugs.projects import Suite
from gumshoe.env.config import SandboxConfig
from gumshoe.env.sandboxes.client import WardenSandbox
from gumshoe.env.sandboxes.open import open_sandbox
from gumshoe.env.workspace import Workspace
from gumshoe.errors import TaskError
from gumshoe.records import FAILING, PASSING, Task, TestRun
from gumshoe.text import plural

__all__ = ["Baseline", "ProjectRunner", "bug_run_limit", "command_limit", "find_baseline", "open_runner"]

DURATION = re.compile(r"^(\d+\.\d+)s (setup|call|teardown)\s+(\S.*)$", re.MULTILINE)
MEASURED_FROM_S = "0.05"
HANGING = 4
SETTLING_ROUNDS = 4
# What an attempt to reach a host by name or address reports in a sandbox without a network.
NO_NETWORK = re.compile(r"name resolution|Name or service not known|Network is unreachable|gaierror")
OUTPUT_KB = 1024
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


@dataclass
class Runs:
    """What several runs of one package's tests have shown."""

    outcomes: list[dict[str, str]] = field(default_factory=list)
    messages: dict[str, str] = field(default_factory=dict[str, str])
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    hanging: list[str] = field(default_factory=list)
    output: str = ""

    def add(self, run: TestRun) -> None:
        self.output = run.result.output
        self.outcomes.append(_outcomes(run))
        self.messages.update({outcome.id: outcome.message for outcome in run.outcomes if outcome.message})
        spent: dict[str, float] = {}
        for seconds, _, test in DURATION.findall(run.result.output):
            # Tests that set the clock make pytest measure years.
            if float(seconds) <= run.result.duration_s:
                spent[test] = spent.get(test, 0.0) + float(seconds)
        for test, seconds in spent.items():
            self.seconds[test] = max(seconds, self.seconds.get(test, 0.0))

    def by_file(self) -> dict[str, list[str]]:
        """All tests that were seen, by the files that they are in."""
        files: dict[str, list[str]] = {}
        for test in dict.fromkeys(test for outcomes in self.outcomes for test in outcomes):
            files.setdefault(test.partition("::")[0], []).append(test)
        return files


def _outcomes(run: TestRun) -> dict[str, str]:
    return {outcome.id: outcome.outcome for outcome in run.outcomes}


def find_baseline(
    name: str,
    project: Path,
    suite: Suite,
    config: BaselineConfig,
    sandbox: SandboxConfig,
    note: Callable[[str], None],
) -> Baseline:
    """Runs the tests of a package in a sandbox without network and drops those that no verdict can rest on.

    Raises TaskError when too few are left, with the message of the first that failed.
    """
    task = suite.task(f"harvest/{name}", str(project))
    with open_runner(task, sandbox, config.run_timeout_s) as runner:
        tester = Tester(runner, suite, config)
        runs = Runs()
        for number in range(config.runs):
            note(f"run {number + 1} of the tests")
            tester.run(runs)
        dropped = _dropped(runs, config)
        _require(runs, dropped, config)
        return tester.settle(dropped, runs, note)


class ProjectRunner:
    """Runs commands in a sandbox that holds a project, each on the original files."""

    def __init__(self, task: Task, sandbox: WardenSandbox, timeout_s: float) -> None:
        self._task = task
        self._sandbox = sandbox
        self._timeout_s = timeout_s
        self._clean = sandbox.snapshot()

    def run_tests(self, command: Sequence[str]) -> TestRun:
        """What a command that runs tests reports."""
        self._sandbox.restore(self._clean)
        task = self._task.model_copy(update={"entrypoint": tuple(command)})
        return Workspace(task, self._sandbox).run_tests(self._timeout_s)


@contextmanager
def open_runner(task: Task, sandbox: SandboxConfig, timeout_s: float) -> Generator[ProjectRunner]:
    """A runner in a sandbox of its own that hands on long outputs."""
    wide = sandbox.model_copy(update={"output_kb": max(sandbox.output_kb, OUTPUT_KB)})
    with open_sandbox(task, wide, trusted=True) as opened:
        yield ProjectRunner(task, opened, timeout_s)


class Tester:
    """Runs a package's tests with varying arguments of pytest."""

    def __init__(self, runner: ProjectRunner, suite: Suite, config: BaselineConfig) -> None:
        self._runner = runner
        self._suite = suite
        self._config = config

    def run(self, runs: Runs) -> None:
        """One run of everything; a test that hangs is left out and the run repeated. Raises TaskError."""
        for _ in range(HANGING):
            left_out = [f"--deselect={test}" for test in runs.hanging]
            run = self._run(["--continue-on-collection-errors", *left_out])
            if not run.result.timed_out:
                runs.add(run)
                return
            stuck = next((one.id for one in run.outcomes if one.outcome == "timed_out"), None)
            if stuck is None:
                break
            runs.hanging.append(stuck)
        raise TaskError(f"its tests take more than {self._config.run_timeout_s:g} s (baseline.run_timeout_s)")

    def settle(self, dropped: dict[str, str], runs: Runs, note: Callable[[str], None]) -> Baseline:
        """Runs what is left until it passes twice in a row: tests may need others that are gone. Raises TaskError."""
        output = ""
        for _ in range(SETTLING_ROUNDS):
            dropped = _with_whole_files(dropped, runs, self._config.max_deselected)
            arguments = tuple(_arguments(dropped, runs))
            note(f"run without {plural(len(dropped), 'test')}")
            seen = [self._run(arguments), self._run(arguments)]
            broken = _broken(_outcomes(seen[0]), _outcomes(seen[1]), dropped)
            if not broken:
                return self._baseline(seen, arguments, dropped)
            output = seen[0].result.output
            dropped = {**dropped, **broken}
        raise TaskError(f"its tests do not stabilize: {reason_of(output)}")

    def _baseline(self, runs: Sequence[TestRun], arguments: tuple[str, ...], dropped: dict[str, str]) -> Baseline:
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
        return Baseline((*self._suite.arguments, *arguments), passing, dropped, seconds)

    def _run(self, arguments: Sequence[str]) -> TestRun:
        measured = ("--durations=0", f"--durations-min={MEASURED_FROM_S}", *arguments)
        return self._runner.run_tests((*self._suite.entrypoint, *measured))


def _dropped(runs: Runs, config: BaselineConfig) -> dict[str, str]:
    """The tests that do not count, each with the reason."""
    changing = _changing(runs.outcomes)
    dropped = {**dict.fromkeys(runs.hanging, "hangs (baseline.run_timeout_s)"), **changing}
    tests = dict.fromkeys(test for outcomes in runs.outcomes for test in outcomes)
    for test in (test for test in tests if _function(test) not in changing):
        seen = {outcomes.get(test) for outcomes in runs.outcomes}
        if seen.intersection(FAILING) or None in seen:
            if len(seen) > 1:
                dropped[test] = "flaky"
            else:
                offline = NO_NETWORK.search(runs.messages.get(test, ""))
                dropped[test] = "not collected" if "::" not in test else "needs a network" if offline else "fails"
        elif runs.seconds.get(test, 0.0) > config.slow_test_s:
            dropped[test] = "slow (baseline.slow_test_s)"
    kept = dict.fromkeys(test for test in tests if not dropped.keys() & {test, _function(test)})
    left = {test: seconds for test, seconds in runs.seconds.items() if test in kept}
    total = sum(left.values())
    for test in sorted(left, key=lambda test: -left[test]):
        if total <= config.suite_s:
            break
        dropped[test] = "too long together (baseline.suite_s)"
        total -= left[test]
    return {**dropped, **_too_many([test for test in kept if test not in dropped], config)}


def _broken(first: Mapping[str, str], second: Mapping[str, str], dropped: Mapping[str, str]) -> dict[str, str]:
    """What else does not count after two runs without the tests that were dropped, each with the reason."""
    changing = _changing([first, second])
    broken = {test: "fails without the others" for test, outcome in first.items() if outcome in FAILING}
    broken |= {test: "flaky" for test in first.keys() | second.keys() if first.get(test) != second.get(test)}
    broken = {test: why for test, why in broken.items() if _function(test) not in changing} | changing
    # What still fails although it is deselected is not a test, but a class or a file that cannot be collected.
    return broken | {
        test.partition("::")[0]: "not collected" for test in broken.keys() & dropped.keys() if "::" in test
    }


def _changing(runs: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """The functions whose tests have different ids in another run, such as when the parameters come from a set.

    All of them are dropped: an id that was in each of these runs may be another test's in the next.
    """
    ids = dict.fromkeys(test for outcomes in runs for test in outcomes if "[" in test)
    absent = (test for test in ids if any(test not in outcomes for outcomes in runs))
    return dict.fromkeys(map(_function, absent), "parameters differ between runs")


def _too_many(tests: Sequence[str], config: BaselineConfig) -> dict[str, str]:
    """The functions whose tests are dropped until few enough remain: pytest deselects by the beginning of an id."""
    count = Counter(_function(test) for test in tests)
    dropped: dict[str, str] = {}
    for function, tests_of_it in count.most_common():
        if count.total() <= config.max_tests:
            break
        dropped[function] = f"{tests_of_it} tests (baseline.max_tests)"
        del count[function]
    return dropped


def _function(test: str) -> str:
    """A test's id without its parameters, which may hold anything."""
    return test.partition("[")[0]


def _require(runs: Runs, dropped: dict[str, str], config: BaselineConfig) -> None:
    """Refuses a package with too few tests. Raises TaskError."""
    first = runs.outcomes[0]
    left = [test for test, outcome in first.items() if outcome in PASSING and test not in dropped]
    if len(left) >= config.min_tests:
        return
    failed = [
        test
        for test, reason in dropped.items()
        if reason in ("fails", "needs a network", "not collected") and test in runs.messages
    ]
    if not first:
        raise TaskError(f"no tests were run: {reason_of(runs.output)}")
    because = f"; {failed[0]}: {runs.messages[failed[0]].splitlines()[0]}" if failed else ""
    needed = f"{config.min_tests} are needed (baseline.min_tests)"
    raise TaskError(f"{len(left)} of its {len(first)} tests are usable, {needed}{because}")


def _with_whole_files(dropped: dict[str, str], runs: Runs, most: int) -> dict[str, str]:
    """The tests that do not count, with the rest of the files that most of them are in: a command has a size limit."""
    files = runs.by_file()
    while len(_arguments(dropped, runs)) > most:
        left = {file: [test for test in tests if test not in dropped] for file, tests in files.items()}
        mixed = [file for file in files if left[file] and len(left[file]) < len(files[file])]
        if not mixed:
            break
        fullest = max(mixed, key=lambda file: len(files[file]) - len(left[file]))
        dropped = {**dropped, **dict.fromkeys(left[fullest], "beside too many of these (baseline.max_deselected)")}
    return dropped


def _arguments(dropped: dict[str, str], runs: Runs) -> list[str]:
    """Pytest's options that leave these tests out; a file whose tests all go is left out as a whole."""
    files = runs.by_file()
    whole = {file for file, tests in files.items() if all(test in dropped for test in tests)}
    whole |= {test for test in dropped if "::" not in test}
    singles = [test for test in dropped if test.partition("::")[0] not in whole]
    return [*(f"--ignore={file}" for file in sorted(whole)), *(f"--deselect={test}" for test in singles)]

"""The history stage: the fixes in a repository's history that its own tests notice, each in its own tree.

The tests that a commit changed run twice: on the parent's tree, and with the commit's code in it. Those that fail
first and pass then make a task. One environment serves all commits whose tests pass in it; where they do not, another
one is built as of the commit's date. What was found out about a commit is kept, so that a harvest can go on after a
stop.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from gumshoe.cache import JsonlCache
from gumshoe.env.bugs.judging import FailedTest
from gumshoe.env.bugs.packages import PackageHarvest, stage_folder, stage_key
from gumshoe.env.bugs.packages.baseline import bug_run_limit, command_limit
from gumshoe.env.bugs.packages.environment import Built, add_built_files, get_environment
from gumshoe.env.bugs.packages.fixes import Fix, History, symptom_of
from gumshoe.env.bugs.projects import Project, Suite, copy_into_taskset, open_runner
from gumshoe.env.bugs.tasks import nearness, problem_statement
from gumshoe.errors import TaskError
from gumshoe.records import Limits, Oracle, Task, TestOutcome, TestRun, WorkspaceSpec

HISTORY = "history"
# So many tests may fail after a fix; they are left out one by one. With more, the commit is no task.
MOST_KNOWN_FAILURES = 30
# After so many environments in a row that could not be built, or in which the commit's tests do not pass, none is built
# any more. Older commits are still tried in the current environment.
MOST_FAILED_BUILDS = 4
# After such an environment, so many commits whose tests do not pass in the current environment go without one of their
# own; one is built for the next.
COMMITS_BETWEEN_BUILDS = 8


@dataclass(frozen=True)
class FailedBuilds:
    """The environments that could not be built, or in which the tests of the commit do not pass.

    Attributes:
        in_a_row: how many since one was of use.
        commits_since: how many commits have wanted an environment since the last of them.
    """

    in_a_row: int = 0
    commits_since: int = COMMITS_BETWEEN_BUILDS


@dataclass(frozen=True)
class JudgedCommit:
    """What became of a candidate.

    Attributes:
        status: `verified`, or why it is no bug of the set.
        built: the environment in which most of its tests pass after the fix; None if there is none.
        arguments: pytest's, of a `verified` one: the files of tests, and the tests in them that are left out.
        failures: the tests that fail before the fix.
        passing: tests that pass before and after the fix.
        seconds: what the tests take.
        failed_builds: afterwards.
    """

    status: str
    built: Built | None = None
    arguments: tuple[str, ...] = ()
    failures: Mapping[str, FailedTest] | None = None
    passing: tuple[str, ...] = ()
    seconds: float = 0.0
    failed_builds: FailedBuilds = FailedBuilds()


_JUDGED = TypeAdapter(JudgedCommit)


@dataclass(frozen=True)
class HistoryHarvest:
    """The tasks of a repository's history, the environments that they need, and what became of its commits."""

    tasks: list[tuple[Task, Oracle]]
    environments: list[Built]
    commits: dict[str, int]


def harvest_history(package: PackageHarvest, repository: Path, first: Built) -> HistoryHarvest:
    """Finds the fixes among the latest `config.history` commits and writes the tree of each bug to the set's folder.

    Args:
        repository: a bare clone.
        first: the environment of its newest commit.

    Raises:
        TaskError: git fails.
        SandboxError: a sandbox broke.
    """
    config, history = package.config, History(repository)
    fixes, others = history.fixes(config.history, config.exclude)
    environments = Environments(package, first)
    judge = CommitJudge(package, history, environments)
    journal = JsonlCache(stage_folder("commits") / f"{package.name}.jsonl")
    state = stage_key(first.lock.name, config.build.model_dump(), config.exclude, config.sandbox.kind)
    tasks: list[tuple[Task, Oracle]] = []
    needed: dict[str, Built] = {}
    for number, fix in enumerate(fixes, 1):
        package.say(f"commit {number} of {len(fixes)}, {len(tasks)} bugs")
        judged = _JUDGED.validate_python(journal.find(f"{state}:{fix.commit}", partial(judge.facts, fix)))
        environments.remember(judged)
        others[judged.status] += 1
        if judged.built is not None and judged.failures:
            needed[judged.built.lock.name] = judged.built
            tasks.append(_write_task(package, history, fix, judged))
    return HistoryHarvest(tasks, list(needed.values()), dict(others))


class Environments:
    """The environments of a repository's commits, newest first.

    What becomes of a commit depends on those before it: on `current`, in which its tests are tried first, and on
    `failed`, which decides whether another one is built for it. Both are kept with each commit, so that a harvest that
    was stopped goes on as if it had not been.
    """

    def __init__(self, package: PackageHarvest, first: Built) -> None:
        self._package = package
        self.current = first
        self.failed = FailedBuilds()

    def remember(self, judged: JudgedCommit) -> None:
        """Goes on from a commit that was judged, maybe by an earlier run."""
        self.current = judged.built or self.current
        self.failed = judged.failed_builds

    def build(self, fix: Fix, source: Path) -> Built | None:
        """A new environment as of the date of a fix, for the tree in `source`. None if it cannot be built, or is not
        tried since those before it were of no use (`MOST_FAILED_BUILDS`, `COMMITS_BETWEEN_BUILDS`).
        """
        failed = self.failed = replace(self.failed, commits_since=self.failed.commits_since + 1)
        if failed.in_a_row and failed.commits_since <= COMMITS_BETWEEN_BUILDS:
            return None
        if failed.in_a_row >= MOST_FAILED_BUILDS:
            return None
        build = self._package.config.build
        key = stage_key(self._package.name, fix.commit, build.model_dump())
        try:
            return get_environment(key, source, build.model_copy(update={"as_of": fix.date}), self._package.say)
        except TaskError:
            self.reject()
            return None

    def accept(self, built: Built) -> None:
        """Goes on with an environment in which a commit's tests pass."""
        self.current = built
        self.failed = replace(self.failed, in_a_row=0)

    def reject(self) -> None:
        """Notes that an environment could not be built, or was of no use."""
        self.failed = FailedBuilds(self.failed.in_a_row + 1, commits_since=0)


class CommitJudge:
    """Runs the tests of a commit before and after it."""

    def __init__(self, package: PackageHarvest, history: History, environments: Environments) -> None:
        self._name = package.name
        self._config = package.config
        self._history = history
        self._environments = environments

    def facts(self, fix: Fix) -> dict[str, Any]:
        """What becomes of a candidate, and the builds that failed up to then, as JSON holds it. Raises SandboxError."""
        judged = self.judge(fix)
        return _JUDGED.dump_python(replace(judged, failed_builds=self._environments.failed), mode="json")

    def judge(self, fix: Fix) -> JudgedCommit:
        """What becomes of a candidate. Raises SandboxError."""
        if not fix.test_modules:
            return JudgedCommit("no tests")
        files = self._history.files(fix)
        try:
            repair = files.overlay
        except TaskError:
            return JudgedCommit("not UTF-8")
        with tempfile.TemporaryDirectory() as parent:
            tree = self._history.write_tree(fix, Path(parent, self._name))
            modules = tuple(path for path in fix.test_modules if (tree / path).is_file())
            if not modules:
                return JudgedCommit("no tests")
            built, after = self._find_environment(fix, tree, repair, modules)
            if built is None:
                return JudgedCommit("no environment")
            return self._compare(tree, built, modules, after)

    def _find_environment(
        self, fix: Fix, tree: Path, repair: dict[str, str | None], modules: Sequence[str]
    ) -> tuple[Built | None, TestRun]:
        """The environment in which the tests pass after the fix, and their run in it."""
        built = self._environments.current
        after = self._run(tree, built, modules, repair)
        if _most_pass(after):
            return built, after
        older = self._environments.build(fix, tree)
        if older is None or older.lock.name == built.lock.name:
            return None, after
        after = self._run(tree, older, modules, repair)
        if _most_pass(after):
            self._environments.accept(older)
            return older, after
        self._environments.reject()
        return None, after

    def _compare(self, tree: Path, built: Built, modules: Sequence[str], after: TestRun) -> JudgedCommit:
        repaired = {outcome.id: outcome for outcome in after.outcomes}
        known = [test for test, outcome in repaired.items() if outcome.failed]
        if len(known) > MOST_KNOWN_FAILURES:
            return JudgedCommit("tests fail after the fix", built)
        left_out = tuple(f"--deselect={test}" for test in known)
        limit = bug_run_limit(self._config, after.result.duration_s)
        before = self._run(tree, built, (*modules, *left_out), {}, limit)
        good = {test for test, outcome in repaired.items() if outcome.passed}
        failing = [outcome for outcome in before.outcomes if outcome.id in good and outcome.failed]
        if not failing:
            if not any(outcome.id in good for outcome in before.outcomes):
                return JudgedCommit("tests cannot be loaded before the fix", built)
            return JudgedCommit("no test notices", built)
        passing = tuple(one.id for one in before.outcomes if one.id in good and one.passed)
        failures = {outcome.id: _failed_test(outcome) for outcome in failing}
        return JudgedCommit("verified", built, (*modules, *left_out), failures, passing, after.result.duration_s)

    def _run(
        self,
        tree: Path,
        built: Built,
        words: Sequence[str],
        overlay: dict[str, str | None],
        limit: float | None = None,
    ) -> TestRun:
        add_built_files(built, tree)
        suite = Suite(built.lock.name, (*built.arguments, *words))
        task = suite.task(f"{HISTORY}/{self._name}", str(tree), overlay)
        with open_runner(task, self._config.sandbox, limit or self._config.baseline.run_timeout_s) as run_tests:
            return run_tests(suite.entrypoint)


def _most_pass(after: TestRun) -> bool:
    """Whether most tests pass after a fix, so that the environment is one for it."""
    passing = sum(outcome.passed for outcome in after.outcomes)
    failing = sum(outcome.failed for outcome in after.outcomes)
    return passing > failing and not after.result.timed_out


def _failed_test(outcome: TestOutcome) -> FailedTest:
    frames = tuple((frame.path, frame.line, frame.function) for frame in outcome.frames)
    return FailedTest(outcome.message.partition(":")[0], outcome.message, frames)


def _write_task(package: PackageHarvest, history: History, fix: Fix, judged: JudgedCommit) -> tuple[Task, Oracle]:
    """The task of a verified bug, whose tree is written into the set."""
    assert judged.built is not None
    assert judged.failures is not None
    name, files = package.name, history.files(fix)
    stored = f"projects/{name}-{fix.commit[:12]}"
    with tempfile.TemporaryDirectory() as parent:
        tree = history.write_tree(fix, Path(parent, name))
        add_built_files(judged.built, tree)
        copy_into_taskset(Project(name, tree, stored), package.folder)
    symptom = symptom_of(fix.message, files.giveaways)
    statement = problem_statement(judged.failures)
    task = Task(
        id=f"{HISTORY}/{name}/{fix.commit[:12]}",
        source=HISTORY,
        problem_statement=f"{symptom}\n\n{statement}" if symptom else statement,
        workspace=WorkspaceSpec(path=stored, environment=judged.built.lock.name),
        entrypoint=Suite(None, (*judged.built.arguments, *judged.arguments)).entrypoint,
        limits=Limits(command_timeout_s=round(command_limit(judged.seconds), 1)),
        readonly=(*(f"/{path}" for path in fix.test_modules), "tests/", "conftest.py"),
        tags={
            "project": name,
            "operator": HISTORY,
            "split": "train",
            "commit": fix.commit[:12],
            "date": fix.date,
            "difficulty": nearness(files.places, judged.failures),
            **files.tags,
        },
    )
    oracle = Oracle(
        task_id=task.id,
        gold_patch=files.gold_patch,
        fail_to_pass=tuple(judged.failures),
        pass_to_pass=judged.passing,
    )
    return task, oracle

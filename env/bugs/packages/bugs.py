"""The bugs stage: bugs that are made in a package, in the tasks of a set.

pytest judges them, whatever runs the tests in the tasks. Where that is unittest, its command has to be found first, and
what it calls the tests.
"""

from __future__ import annotations

import posixpath
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from gumshoe.cache import FolderCache, JsonlCache
from gumshoe.env.bugs.config import HarvestConfig, SynthConfig
from gumshoe.env.bugs.make import SynthResult, make_bugs
from gumshoe.env.bugs.operators import OPERATORS
from gumshoe.env.bugs.packages import PackageHarvest, stage_folder, stage_key
from gumshoe.env.bugs.packages.baseline import Baseline, bug_run_limit, command_limit
from gumshoe.env.bugs.packages.environment import Built
from gumshoe.env.bugs.projects import Project, Suite, copy_into_taskset, open_runner, reason_of
from gumshoe.env.tasks.projects import digest_of, is_doctest
from gumshoe.env.tasks.taskset import TASKS, stored_taskset, write_taskset
from gumshoe.errors import TaskError
from gumshoe.records import TestRun


@dataclass(frozen=True)
class MadeBugs:
    """What became of the candidates, and the limit `bugs_s` where that is why there are not more."""

    counts: dict[str, int]
    ended_by_bugs_s: float | None = None


def harvest_bugs(package: PackageHarvest, built: Built, baseline: Baseline) -> Counter[str]:
    """Writes the project and its verified bugs to the package's task set; returns what became of the candidates.

    The tests run on the copy of the project that the set ships.

    Raises:
        TaskError: no bug is found, or the tests do not run with unittest.
        UnfitTests: some tests turn out not to be good for a verdict.
    """
    project = _shipped_project(package, built, baseline)
    wanted = _synth_config(project, baseline, package.config)
    suite, content = project.suite, digest_of(project.path)
    # Without the limit on the time, which `is_whole` compares.
    options = wanted.model_dump(exclude={"out", "project_s"})
    key = stage_key(project.name, content, suite.environment, suite.arguments, options, sorted(OPERATORS))
    judging = stage_key(content, suite.environment, suite.arguments, wanted.timeout_s, wanted.sandbox.model_dump())
    if suite.command:
        key, judging = (stage_key(one, suite.command, suite.names) for one in (key, judging))
    journal = stage_folder("verdicts") / f"{judging}.jsonl"
    cache = FolderCache(stage_folder("bugs"), MadeBugs)

    def is_whole(made: MadeBugs) -> bool:
        """Whether the set is there, and more time would not give more."""
        limit = made.ended_by_bugs_s
        return (cache.folder / key / TASKS).is_file() and (limit is None or limit >= package.config.bugs_s)

    made = cache.find(key, lambda folder: _make(package, project, wanted, journal, folder), is_whole)
    write_taskset(package.folder, stored_taskset(cache.folder / key))
    return Counter(made.counts)


def _shipped_project(package: PackageHarvest, built: Built, baseline: Baseline) -> Project:
    """The project as the set ships it, copied there, with how its tests are run."""
    seconds = command_limit(baseline.seconds)
    suite = Suite(built.lock.name, baseline.arguments, seconds, limit="bug_run_s", repeatable=True)
    if package.config.runner == "unittest":
        suite = unittest_suite(package, built.project, suite, baseline)
    project = Project(package.name, built.project, f"projects/{package.name}", suite)
    copy_into_taskset(project, package.folder)
    return replace(project, path=package.folder / project.stored)


def _make(package: PackageHarvest, project: Project, wanted: SynthConfig, journal: Path, folder: Path) -> MadeBugs:
    """Makes the bugs and writes them to a folder as a task set; `journal` is the file of verdicts."""

    def progress(_: str, judged: int, kept: int) -> None:
        package.say(f"{kept} bugs in {judged} candidates")

    config, began = package.config, time.monotonic()
    result = make_bugs(wanted, progress, [project], JsonlCache(journal))
    _require_some(result, project.name)
    write_taskset(folder, result.tasks)
    is_cut = time.monotonic() - began >= config.bugs_s and len(result.tasks) < config.per_package
    return MadeBugs(dict(result.counts[project.name]), config.bugs_s if is_cut else None)


def _synth_config(project: Project, baseline: Baseline, config: HarvestConfig) -> SynthConfig:
    # The files that hold the tests; modules that hold doctests are not among them.
    tests = (test for test in baseline.passing if not is_doctest(test))
    files = [f"/{path}" for path in dict.fromkeys(test.partition("::")[0] for test in tests)]
    return SynthConfig(
        projects=(str(project.path),),
        seed=config.seed,
        per_project=config.per_package,
        candidates_per_project=config.candidates_per_package,
        project_s=config.bugs_s,
        operators=config.operators,
        exclude=(*config.exclude, *files),
        readonly=(*files, "tests/", "conftest.py"),
        heldout_projects=0.0,
        heldout_bugs=config.heldout_bugs,
        heldout_by=config.heldout_by,
        timeout_s=round(bug_run_limit(config, baseline.seconds), 1),
        workers=1,
        sandbox=config.sandbox,
    )


def _require_some(result: SynthResult, name: str) -> None:
    counts = result.counts[name]
    if counts["kept"]:
        return
    tried = counts.total()
    if tried and counts["uncovered"] == tried:
        raise TaskError(f"no test runs any line that could be changed ({tried} candidates): are its sources excluded?")
    found = ", ".join(f"{count} {status}" for status, count in counts.most_common()) or "no candidates"
    raise TaskError(f"none of the bugs is detected by its tests: {found}")


UNITTEST = ("python", "-m", "unittest")
# A longer command would tell an agent little, and some systems refuse it.
MAX_NAMED = 400

Command = tuple[str, ...]


def unittest_suite(package: PackageHarvest, project: Path, suite: Suite, baseline: Baseline) -> Suite:
    """The suite with a command of unittest that runs those tests of the baseline which unittest knows, and passes.

    The command discovers all tests in a folder or, where some of these do not count, lists those that do.
    Raises TaskError when no such command is found.
    """
    config = package.config
    tests = [test for test in baseline.passing if is_method(test)]
    least = config.baseline.min_tests
    if len(tests) < least:
        raise TaskError(f"{len(tests)} of its tests are methods of classes, {least} are needed (baseline.min_tests)")
    known = [*tests, *filter(is_method, baseline.deselected)]
    problem = ""
    task = suite.task(f"harvest/{package.name}", str(project))
    with open_runner(task, config.sandbox, config.baseline.run_timeout_s) as run_tests:
        for command in commands(tests):
            package.say("run with unittest")
            run = run_tests(command)
            names = names_in(run, tests)
            if not run.passed:
                command = (*UNITTEST, "-v", *shortest(names, known))
                run = run_tests(command) if 0 < len(command) - len((*UNITTEST, "-v")) <= MAX_NAMED else run
                names = names_in(run, tests)
            if run.passed and len(names) >= least and names_in(run_tests(command), tests) == names:
                return replace(suite, command=command, names=names)
            problem = problem or f"{' '.join(command[:8])}: {reason_of(run.result.output)}"
    raise TaskError(f"unittest does not run its tests: {problem}")


def is_method(test: str) -> bool:
    """Whether pytest's name of a test can be that of a method of a test class."""
    return test.count("::") >= 2 and "[" not in test and test.partition("::")[0].endswith(".py")


def commands(tests: Sequence[str]) -> Iterator[Command]:
    """Ways of discovering these tests: from the folder of the files, and from the project's, which contains it."""
    files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
    folder = posixpath.commonpath([posixpath.dirname(file) for file in files]) or "."
    usual = ("test*.py", "*_test.py", "*_tests.py")
    pattern = next((one for one in usual if all(PurePosixPath(file).match(one) for file in files)), "*test*.py")
    chosen = () if pattern == "test*.py" else ("-p", pattern)
    yield (*UNITTEST, "discover", "-v", "-s", folder, "-t", ".", *chosen)
    if folder != ".":
        yield (*UNITTEST, "discover", "-v", "-s", folder, *chosen)


def names_in(run: TestRun, tests: Sequence[str]) -> dict[str, str]:
    """What a run of unittest calls the tests that passed, by pytest's names."""
    passed = {outcome.id for outcome in run.outcomes if outcome.passed}
    found = ((test, _among(dotted(test), passed)) for test in tests)
    return {test: name for test, name in found if name is not None}


def dotted(test: str) -> str:
    """Pytest's name of a file, class or test as unittest would write it from the project's folder."""
    path, _, rest = test.partition("::")
    return "::".join(filter(None, (path.removesuffix(".py"), rest))).replace("::", ".").replace("/", ".")


def _among(name: str, known: set[str]) -> str | None:
    """The name, or its end, that is known: unittest leaves out the folders that it started from."""
    parts = name.split(".")
    return next((end for start in range(len(parts) - 2) if (end := ".".join(parts[start:])) in known), None)


def shortest(names: dict[str, str], tests: Sequence[str]) -> list[str]:
    """The modules, classes and tests to name so that exactly these tests run: whole ones if all of one counts."""
    wanted = list(names)
    chosen: list[str] = []
    for depth in (1, 2):
        groups = dict.fromkeys(_part(test, depth) for test in wanted)
        whole = [group for group in groups if all(test in names for test in tests if _part(test, depth) == group)]
        chosen += [dotted(group) for group in whole]
        wanted = [test for test in wanted if _part(test, depth) not in whole]
    return [*chosen, *(dotted(test) for test in wanted)]


def _part(test: str, depth: int) -> str:
    """The file of a test, or its file and class."""
    return "::".join(test.split("::")[:depth])

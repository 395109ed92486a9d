"""The tests of a package as unittest runs them: the command that tasks get, and what it calls the tests."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from gumshoe.env.bugs.config import HarvestConfig
from gumshoe.env.bugs.packages.baseline import Baseline, open_runner
from gumshoe.env.bugs.packages.requirements import reason_of
from gumshoe.env.bugs.projects import Suite
from gumshoe.errors import TaskError
from gumshoe.records import TestRun

__all__ = ["unittest_suite"]

UNITTEST = ("python", "-m", "unittest")
# A longer command would tell an agent little, and some systems refuse it.
MAX_NAMED = 400

Command = tuple[str, ...]


def unittest_suite(
    name: str,
    project: Path,
    suite: Suite,
    baseline: Baseline,
    config: HarvestConfig,
    note: Callable[[str], None],
) -> Suite:
    """The suite with a command of unittest that runs those tests of the baseline which unittest knows, and passes.

    The command discovers all tests in a folder or, where some of these do not count, lists those that do.
    Raises TaskError when no such command is found.
    """
    tests = [test for test in baseline.passing if is_method(test)]
    least = config.baseline.min_tests
    if len(tests) < least:
        raise TaskError(f"{len(tests)} of its tests are methods of classes, {least} are needed (baseline.min_tests)")
    known = [*tests, *filter(is_method, baseline.deselected)]
    problem = ""
    task = suite.task(f"harvest/{name}", str(project))
    with open_runner(task, config.sandbox, config.baseline.run_timeout_s) as runner:
        for command in commands(tests):
            note("run with unittest")
            run = runner.run_tests(command)
            names = names_in(run, tests)
            if not run.passed:
                command = (*UNITTEST, "-v", *shortest(names, known))
                run = runner.run_tests(command) if 0 < len(command) - len((*UNITTEST, "-v")) <= MAX_NAMED else run
                names = names_in(run, tests)
            if run.passed and len(names) >= least and names_in(runner.run_tests(command), tests) == names:
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
    names = [PurePosixPath(file).name for file in files]
    pattern = next((one for one in ("test*.py", "*_test.py", "*_tests.py") if _all_match(names, one)), "*test*.py")
    chosen = () if pattern == "test*.py" else ("-p", pattern)
    yield (*UNITTEST, "discover", "-v", "-s", folder, "-t", ".", *chosen)
    if folder != ".":
        yield (*UNITTEST, "discover", "-v", "-s", folder, *chosen)


def _all_match(names: Sequence[str], pattern: str) -> bool:
    return all(PurePosixPath(name).match(pattern) for name in names)


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

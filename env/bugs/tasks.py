"""The clean projects that bugs are put into, how their tests are run, and the task that a bug in one makes.

A task says what fails and how, as a test run shows it, and nothing about the cause. It is also written as a row of
SWE-smith: a patch that puts the bug in, and the tests that fail and pass with it. `gumshoe tasks ...
swesmith:FOLDER/rows.jsonl` reads the rows again; so does whatever reads SWE-smith's. In place of an image, `project`
names the clean project as a task set does.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pathspec

from gumshoe.env.bugs.candidates import Candidate, CandidateVerdict, CodePosition, FailedTest
from gumshoe.env.diff import make_patch, reverse_patch
from gumshoe.env.tasks.projects import (
    CASEBOOK,
    PYTEST,
    SCHEME,
    casebook_projects,
    check_name,
    left_out_of_copy,
    test_files,
)
from gumshoe.errors import TaskError
from gumshoe.records import Limits, Oracle, Task, WorkspaceSpec
from gumshoe.storage import new_folder, read_bounded, write_jsonl

__all__ = [
    "Project",
    "Suite",
    "copy_into_taskset",
    "difficulty",
    "find_projects",
    "left_out_of_project",
    "problem_statement",
    "sources_of",
    "task_of",
    "write_rows",
]


@dataclass(frozen=True)
class Suite:
    """The command that runs a project's tests.

    Bugs are judged by pytest, which also runs unittest tests. The tasks may use another command.

    Attributes:
        environment: name of the environment that it needs; None runs on the sandbox's own Python.
        arguments: what pytest gets besides the project's own options: files and tests that do not count, plugins off.
        command_timeout_s: the limit that tasks have for one command; None leaves the default.
        command: what runs the tests in the tasks; empty: pytest.
        limit: the key of the config that limits one run, for messages.
        repeatable: whether tests must not use random numbers without a seed, nor measure time.
        names: what this command calls the tests, by their names for pytest; others do not count. None: the same names.
    """

    environment: str | None = None
    arguments: tuple[str, ...] = ()
    command_timeout_s: float | None = None
    command: tuple[str, ...] = ()
    names: Mapping[str, str] | None = None
    limit: str = "timeout_s"
    repeatable: bool = False

    @property
    def entrypoint(self) -> tuple[str, ...]:
        """The whole command line of pytest."""
        return (*PYTEST, *self.arguments)

    @property
    def task_entrypoint(self) -> tuple[str, ...]:
        """The command line in the tasks."""
        return self.command or self.entrypoint

    def named(self, tests: Iterable[str]) -> tuple[str, ...]:
        """Tests as the tasks name them, without those that do not count there."""
        return tuple(tests) if self.names is None else tuple(self.names[one] for one in tests if one in self.names)

    @property
    def limits(self) -> Limits:
        """The limits of a task with this suite."""
        return Limits() if self.command_timeout_s is None else Limits(command_timeout_s=self.command_timeout_s)

    def task(self, name: str, path: str, overlay: dict[str, str | None] | None = None) -> Task:
        """A task that runs this suite on the project in `path`."""
        return Task(
            id=name,
            source="synth",
            problem_statement="",
            workspace=WorkspaceSpec(path=path, overlay=overlay or {}, environment=self.environment),
            entrypoint=self.entrypoint,
            limits=self.limits,
        )


MAX_SOURCE_BYTES = 4 << 20
ENVIRONMENTS = frozenset({".venv", "venv", ".tox", ".nox"})


@dataclass(frozen=True)
class Project:
    """A project, and how a task set names it (see `gumshoe.env.tasks.projects`)."""

    name: str
    path: Path
    stored: str
    suite: Suite = field(default_factory=Suite)

    @property
    def bundled(self) -> bool:
        """Whether the project comes with Gumshoe."""
        return self.stored.startswith(SCHEME)


def find_projects(names: Sequence[str]) -> list[Project]:
    """The projects by name, sorted: `casebook`, `casebook:NAME` or folders. Raises TaskError."""
    found: dict[str, Project] = {}
    for name in names:
        for project in _projects(name):
            if project.name in found and found[project.name] != project:
                raise TaskError(f"two projects are called {project.name}: rename one of the folders")
            if not test_files(project.path):
                raise TaskError(f"project {project.name}: {project.path} has no tests: add tests/test_*.py")
            found[project.name] = project
    return [found[name] for name in sorted(found)]


def _projects(name: str) -> list[Project]:
    bundled = {key: Project(key, path, f"{SCHEME}{key}") for key, path in casebook_projects().items()}
    if name == "casebook":
        if not bundled:
            raise TaskError(f"the casebook is empty: {CASEBOOK} holds no cases")
        return list(bundled.values())
    if name.startswith(SCHEME):
        key = name.removeprefix(SCHEME)
        if key not in bundled:
            raise TaskError(f"the casebook has no project {key!r}: it has {', '.join(bundled)}")
        return [bundled[key]]
    if not Path(name).is_dir():
        raise TaskError(f"no project {name!r}: give casebook, casebook:NAME or the folder of a project")
    folder = Path(name).resolve()
    check_name(folder)
    return [Project(folder.name, folder, f"projects/{folder.name}")]


def sources_of(project: Project, exclude: Sequence[str]) -> dict[str, str]:
    """The texts of the Python files that may get bugs, by path. Raises TaskError when there are none.

    Files whose names are not UTF-8 get none: a task could not name them.
    """
    spec = pathspec.GitIgnoreSpec.from_lines(exclude)
    paths = sorted(path for path in project.path.rglob("*.py") if path.is_file())
    names = [path.relative_to(project.path).as_posix() for path in paths]
    chosen = [name for name in names if _is_utf8(name) and not spec.match_file(name)]
    if not chosen:
        raise TaskError(f"project {project.name}: every Python file is excluded, so there is nowhere to put bugs")
    return {name: _text(project, name) for name in chosen}


def _is_utf8(name: str) -> bool:
    return name == name.encode("utf-8", "replace").decode()


def _text(project: Project, name: str) -> str:
    try:
        return read_bounded(project.path / name, MAX_SOURCE_BYTES, error=TaskError).decode("utf-8")
    except (TaskError, UnicodeDecodeError) as error:
        raise TaskError(f"project {project.name}: {name} cannot be read: {error}") from None


def copy_into_taskset(project: Project, folder: Path) -> None:
    """Copies a project that is not bundled into the task set in `folder`, so that the set can be moved.

    Pipes, sockets and the like are left out, as they are in a sandbox. Raises TaskError when a file cannot be read.
    """
    if project.bundled:
        return
    try:
        with new_folder(folder / project.stored) as fresh:
            shutil.copytree(project.path, fresh, symlinks=True, ignore=left_out_of_project, dirs_exist_ok=True)
    except (OSError, shutil.Error) as error:
        raise TaskError(f"project {project.name} cannot be copied: {' '.join(str(error).split())}") from None


def left_out_of_project(folder: str, names: list[str]) -> set[str]:
    """What is not copied with a project of a user's: what no sandbox sees, and environments (for `shutil.copytree`)."""
    return left_out_of_copy(folder, names) | (ENVIRONMENTS & set(names))


MESSAGE_LINES, MESSAGE_CHARS = 6, 400
ROWS = "rows.jsonl"
DIFFICULTIES = ("same_function", "other_function", "other_file")


def task_of(
    project: Project,
    sources: Mapping[str, str],
    bug: Candidate,
    verdict: CandidateVerdict,
    split: str,
    readonly: tuple[str, ...],
) -> tuple[Task, Oracle]:
    """The task of a candidate that the tests detect.

    Args:
        sources: the texts of the clean files, by path.
        readonly: patterns of the files that an agent cannot write.
    """
    failures = verdict.failures or {}
    task = Task(
        id=f"synth/{project.name}/{bug.operator}-{bug.digest}",
        source="synth",
        problem_statement=problem_statement(failures),
        workspace=WorkspaceSpec(
            path=project.stored,
            overlay={bug.path: bug.text},
            environment=project.suite.environment,
        ),
        entrypoint=project.suite.task_entrypoint,
        limits=project.suite.limits,
        readonly=readonly,
        tags={
            "project": project.name,
            "operator": bug.operator,
            "split": split,
            "difficulty": difficulty([bug.position], failures),
        },
    )
    oracle = Oracle(
        task_id=task.id,
        gold_patch=make_patch({bug.path: (bug.text.encode(), sources[bug.path].encode())}),
        fail_to_pass=tuple(failures),
        pass_to_pass=verdict.passing,
    )
    return task, oracle


def problem_statement(failures: Mapping[str, FailedTest]) -> str:
    """What a user who ran the tests would report. `failures` maps test ids, in the order of the run, to facts."""
    first, others = next(iter(failures)), len(failures) - 1
    lines = [f"{first} fails:", "", *_indented(failures[first].message), ""]
    if others:
        lines += ["So does one other test." if others == 1 else f"So do {others} other tests.", ""]
    lines += ["The tests are right. Find the cause and repair it.", ""]
    return "\n".join(lines)


def _indented(message: str) -> list[str]:
    lines = message[:MESSAGE_CHARS].rstrip().splitlines()
    cut = len(lines) > MESSAGE_LINES or len(message) > MESSAGE_CHARS
    shown = [f"    {line}".rstrip() for line in lines[:MESSAGE_LINES]]
    return [*shown, "    ..."] if cut else shown


def _smith_row(task: Task, oracle: Oracle) -> dict[str, Any]:
    """The row of one bug, made or from a history, with its project as a task set stores it."""
    return {
        "instance_id": task.id.replace("/", "."),
        "repo": task.tags["project"],
        "patch": reverse_patch(oracle.gold_patch),
        "FAIL_TO_PASS": list(oracle.fail_to_pass),
        "PASS_TO_PASS": list(oracle.pass_to_pass),
        "image_name": "",
        "problem_statement": task.problem_statement,
        "strategy": task.tags["operator"],
        "project": task.workspace.path,
    }


def write_rows(folder: Path, tasks: Iterable[tuple[Task, Oracle]]) -> None:
    """Replaces rows.jsonl in a folder. Equal tasks give equal bytes."""
    write_jsonl(folder / ROWS, (_smith_row(task, oracle) for task, oracle in tasks))


def difficulty(places: Sequence[CodePosition], failures: Mapping[str, FailedTest]) -> str:
    """Where the cause is, seen from the innermost frame of the traceback; the nearest of all counts.

    `same_function`: the traceback ends in the function with the cause. `other_function`: in the same file.
    `other_file`: elsewhere, such as in the assertion of a test; or the fix only adds files.
    """
    distances = (_distance(place, failure) for place in places for failure in failures.values())
    return min(distances, key=DIFFICULTIES.index, default=DIFFICULTIES[-1])


def _distance(place: CodePosition, failure: FailedTest) -> str:
    if not failure.frames:
        return "other_file"
    path, _, function = failure.frames[-1]
    if path != place[0]:
        return "other_file"
    return "same_function" if function == place[1].rpartition(".")[2] else "other_function"

"""The clean projects that bugs are put into: where they are, their sources, and running their tests."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import pathspec

from gumshoe.env.config import SandboxConfig
from gumshoe.env.sandboxes.open import open_sandbox
from gumshoe.env.tasks.projects import (
    CASEBOOK,
    PYTEST,
    SCHEME,
    casebook_projects,
    check_name,
    left_out_of_copy,
    test_files,
)
from gumshoe.env.workspace import Workspace
from gumshoe.errors import TaskError
from gumshoe.records import Limits, Task, TestRun, WorkspaceSpec
from gumshoe.storage import new_folder, read_bounded
from gumshoe.text import plain_text

MAX_SOURCE_BYTES = 4 << 20
ENVIRONMENTS = frozenset({".venv", "venv", ".tox", ".nox"})


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
    chosen = [name for name in names if name == name.encode(errors="replace").decode() and not spec.match_file(name)]
    if not chosen:
        raise TaskError(f"project {project.name}: every Python file is excluded, so there is nowhere to put bugs")
    return {name: _text(project, name) for name in chosen}


def _text(project: Project, name: str) -> str:
    try:
        return read_bounded(project.path / name, MAX_SOURCE_BYTES, error=TaskError).decode("utf-8")
    except (TaskError, UnicodeDecodeError) as error:
        raise TaskError(f"project {project.name}: {name} cannot be read: {error}") from None


def copy_into_taskset(project: Project, folder: Path) -> None:
    """Copies a project that is not bundled into the task set in `folder`, so that the set can be moved.

    Raises TaskError as `copy_tree` does.
    """
    if not project.bundled:
        with new_folder(folder / project.stored) as fresh:
            copy_tree(project.path, fresh)


def copy_tree(source: Path, target: Path) -> None:
    """Copies a folder of sources to another, which is made if need be.

    What no sandbox sees, such as pipes, is left out, and so are environments and links that lead out of the folder.
    Raises TaskError when something cannot be read.
    """

    def left_out(folder: str, names: list[str]) -> set[str]:
        links = {name for name in names if _leads_out(Path(folder, name), source)}
        return left_out_of_copy(folder, names) | (ENVIRONMENTS & set(names)) | links

    try:
        shutil.copytree(source, target, symlinks=True, ignore=left_out, dirs_exist_ok=True)
    except (OSError, shutil.Error) as error:
        raise TaskError(f"{source} cannot be copied: {' '.join(str(error).split())}") from None


def _leads_out(path: Path, root: Path) -> bool:
    """Whether a path is a link to a place outside of a folder, or one that leads in a circle."""
    try:
        return path.is_symlink() and not path.resolve().is_relative_to(root.resolve())
    except (OSError, RuntimeError):
        return True


OUTPUT_KB = 1024


@contextmanager
def open_runner(task: Task, config: SandboxConfig, timeout_s: float) -> Generator[Callable[[Sequence[str]], TestRun]]:
    """A function that runs the tests of a project by a command, on the original files each time.

    It does that in a sandbox of its own, which hands on long outputs.
    """
    wide = config.model_copy(update={"output_kb": max(config.output_kb, OUTPUT_KB)})
    with open_sandbox(task, wide, trusted=True) as sandbox:
        clean = sandbox.snapshot()

        def run_tests(command: Sequence[str]) -> TestRun:
            sandbox.restore(clean)
            return Workspace(task.model_copy(update={"entrypoint": tuple(command)}), sandbox).run_tests(timeout_s)

        yield run_tests


# What pytest marks as the exception, and what else tells of an error.
EXCEPTION = re.compile(r"E\s+[\w.]*(?:Error|Exception|Warning|Interrupted|Failed)\b")
ERROR = re.compile(r"(?:[\w.]+Error\b|ERROR: (?!usage:)|(?:[^:]+: )?error: )")


def reason_of(output: str) -> str:
    """The line of pytest's output that best tells why nothing works: the exception, not the summary."""
    lines = [line.removeprefix("INTERNALERROR>").strip() for line in plain_text(output).splitlines() if line.strip()]
    exceptions = (line[1:].strip() for line in lines if EXCEPTION.match(line))
    errors = (line for line in lines if ERROR.match(line))
    return next(chain(exceptions, errors, lines[-1:]), "it printed nothing")[:300]

"""The clean projects that bugs are put into."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pathspec

from gumshoe.env.tasks.projects import CASEBOOK, casebook_projects, test_files
from gumshoe.errors import TaskError

__all__ = ["Project", "adopt", "find_projects", "sources_of"]

SCHEME = "casebook:"
LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.pyc", ".git", ".pytest_cache", ".venv", "venv", "*.egg-info")


@dataclass(frozen=True)
class Project:
    """A project, and how a task set names it (see `gumshoe.env.tasks.projects`)."""

    name: str
    path: Path
    stored: str

    @property
    def bundled(self) -> bool:
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
    folder = Path(name).resolve()
    if not folder.is_dir():
        raise TaskError(f"no project {name!r}: give casebook, casebook:NAME or the folder of a project")
    return [Project(folder.name, folder, f"projects/{folder.name}")]


def sources_of(project: Project, exclude: Sequence[str]) -> dict[str, str]:
    """The texts of the Python files that may get bugs, by path. Raises TaskError when there are none."""
    spec = pathspec.GitIgnoreSpec.from_lines(exclude)
    paths = sorted(path for path in project.path.rglob("*.py") if path.is_file())
    names = [path.relative_to(project.path).as_posix() for path in paths]
    chosen = [name for name in names if not spec.match_file(name)]
    if not chosen:
        raise TaskError(f"project {project.name}: every Python file is excluded, none is left to put bugs into")
    return {name: _text(project, name) for name in chosen}


def _text(project: Project, name: str) -> str:
    try:
        return (project.path / name).read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TaskError(f"project {project.name}: {name} cannot be read: {error}") from None


def adopt(project: Project, folder: Path) -> None:
    """Copies a project that is not bundled into the task set in `folder`, so that the set can be moved."""
    if project.bundled:
        return
    target = folder / project.stored
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    shutil.rmtree(beside, ignore_errors=True)
    shutil.copytree(project.path, beside, symlinks=True, ignore=LEFT_OUT)
    shutil.rmtree(target, ignore_errors=True)
    beside.replace(target)

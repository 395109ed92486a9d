"""Projects that tasks are made from, and how a stored task names them so that it is read on any machine.

Stored as `casebook:<name>`, or as a path relative to the folder of the task set; in memory always an absolute path.
"""

from __future__ import annotations

from pathlib import Path

from gumshoe.errors import TaskError

__all__ = ["CASEBOOK", "casebook_projects", "resolve_project", "test_files"]

CASEBOOK = Path(__file__).resolve().parent.parent / "casebook"
SCHEME = "casebook:"
TEST_FILES = ("test_*.py", "*_test.py", "*_tests.py", "test.py", "tests.py")


def casebook_projects() -> dict[str, Path]:
    """The bundled clean projects by name, sorted."""
    return {case.parent.name: case.parent / "repo" for case in sorted(CASEBOOK.glob("*/case.yaml"))}


def resolve_project(stored: str, folder: Path) -> Path:
    """The absolute path of a project as a task set in `folder` names it. Raises TaskError when it is not there."""
    if stored.startswith(SCHEME):
        path = CASEBOOK / stored.removeprefix(SCHEME) / "repo"
        hint = "this version of Gumshoe does not bundle it"
    else:
        path = folder / stored
        hint = "the task set is incomplete"
    path = path.resolve()
    allowed = CASEBOOK if stored.startswith(SCHEME) else folder.resolve()
    if not path.is_relative_to(allowed) or path == allowed:
        raise TaskError(f"the project {stored} is outside of {allowed}: copy it into the task set")
    if not path.is_dir():
        raise TaskError(f"no project {stored}: {hint}")
    return path


def test_files(project: Path) -> list[Path]:
    """The files with names that pytest collects by default, or that projects commonly tell it to, sorted."""
    return sorted(path for pattern in TEST_FILES for path in project.rglob(pattern) if path.is_file())

"""Exercism's Python exercises, as aider's benchmark uses them: an empty solution, its tests, the text of the task.

`path` is a checkout of exercism/python or of Aider-AI/polyglot-benchmark, or any folder below it that holds
exercises. The example solution is kept out of the sandbox with everything else in `.meta`.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ValidationError

from gumshoe.env.diff import make_patch
from gumshoe.env.tasks.projects import PYTEST, workspace_from_folder
from gumshoe.env.tasks.taskset import OnError, load_entries, refuse
from gumshoe.errors import TaskError
from gumshoe.records import Oracle, Task
from gumshoe.storage import describe, read_bounded

__all__ = ["load_aider"]

META, CONFIG = ".meta", "config.json"
TEXTS = ("introduction.md", "instructions.md", "instructions.append.md")
SOLUTION, TESTS, EXAMPLE = "solution", "test", "example"
MAX_BYTES = 4 << 20


class _Files(BaseModel):
    solution: list[str] = []
    test: list[str] = []
    example: list[str] = []


class _Config(BaseModel):
    """What an exercise's config says, as far as it is needed."""

    files: _Files


def load_aider(path: str | Path, *, on_error: OnError = refuse) -> list[tuple[Task, Oracle]]:
    """Every Python exercise below `path`, sorted by name.

    Raises TaskError when there are none; `on_error` may take that of a single exercise.
    """
    root = Path(path).resolve()
    if not root.is_dir():
        raise TaskError(f"no folder {path}: give a checkout of Exercism's Python exercises")
    found = {file.parent.parent for file in root.rglob(f"{META}/{CONFIG}")}
    folders = sorted(folder for folder in found if any(folder.glob("*.py")))
    if not folders:
        raise TaskError(f"{path} holds no Python exercises: each has {META}/{CONFIG} and Python files")
    return load_entries(folders, _exercise, on_error)


def _exercise(folder: Path) -> tuple[Task, Oracle]:
    where = f"task aider/{folder.name}"
    files = _files(folder, where)
    tests = files[TESTS]
    task = Task(
        id=f"aider/{folder.name}",
        source="aider",
        problem_statement=_statement(folder, files[SOLUTION]),
        workspace=workspace_from_folder(folder, dict.fromkeys(_hidden(folder))),
        entrypoint=(*PYTEST, *tests),
        readonly=tuple(f"/{name}" for name in tests),
        tags={"project": folder.name},
    )
    return task, Oracle(task_id=task.id, gold_patch=_gold(folder, files, where))


def _files(folder: Path, where: str) -> dict[str, list[str]]:
    """The files of each role, as the exercise's config names them. Raises TaskError."""
    path = folder / META / CONFIG
    try:
        named = _Config.model_validate_json(read_bounded(path, MAX_BYTES, error=TaskError)).files.model_dump()
    except ValidationError as error:
        raise TaskError(f"{where}: {path} cannot be read: {describe(error)}") from None
    for role in (SOLUTION, TESTS):
        if not named[role]:
            raise TaskError(f"{where}: {path} names no {role} files")
        missing = [name for name in named[role] if not (folder / name).is_file()]
        if missing:
            raise TaskError(f"{where}: its file {missing[0]} is missing")
    return named


def _statement(folder: Path, solution: list[str]) -> str:
    texts = [folder / ".docs" / name for name in TEXTS]
    parts = [text.read_text(encoding="utf-8", errors="replace").strip() for text in texts if text.is_file()]
    wanted = f"Write the solution in {', '.join(solution)}, so that the tests pass. Keep the names that stand there."
    return "\n\n".join([*parts, wanted]) + "\n"


def _hidden(folder: Path) -> list[str]:
    paths = sorted(path for path in (folder / META).rglob("*") if path.is_file())
    return [path.relative_to(folder).as_posix() for path in paths]


def _gold(folder: Path, files: dict[str, list[str]], where: str) -> str:
    """The example put in place of the solution; empty where the two do not correspond."""
    if len(files[EXAMPLE]) != len(files[SOLUTION]):
        return ""
    pairs = zip(files[SOLUTION], files[EXAMPLE], strict=True)
    try:
        return make_patch(
            {name: ((folder / name).read_bytes(), (folder / example).read_bytes()) for name, example in pairs}
        )
    except (OSError, ValueError) as error:
        raise TaskError(f"{where}: its example cannot be read: {error}") from None

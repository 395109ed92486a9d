"""Tasks from folders on disk: a user's own repository, or a set of folders with a `test.py` each.

Neither comes with an answer: the oracle is empty, and `check` can only show that the tests fail.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from gumshoe.env.tasks.content import workspace_from_folder
from gumshoe.env.tasks.entries import OnError, load_entries, refuse
from gumshoe.errors import TaskError
from gumshoe.records import Oracle, Task

__all__ = ["load_local", "load_nightmare"]

TEST = "test.py"


def load_local(
    path: str | Path,
    entrypoint: str | Sequence[str] = "python -m pytest -q",
    debug_entrypoint: str | Sequence[str] | None = None,
    problem_statement: str = "",
    setup: Sequence[str | Sequence[str]] = (),
    ignore: Sequence[str] = (),
    readonly: Sequence[str] = (),
    environment: str | None = None,
) -> list[tuple[Task, Oracle]]:
    """The repository in the folder `path` as one task, `local/<name of the folder>`.

    Its files `.debugignore` and `.debugreadonly` hold in addition to `ignore` and `readonly`. Commands are lists of
    words, or texts that are split into words as a shell would; a bare `pytest` is run as a module of the sandbox's
    Python, where the program may not be installed. Raises TaskError.
    """
    folder = Path(path).resolve()
    if not folder.is_dir():
        raise TaskError(f"no folder {path}: give the folder of a repository")
    command = _words(entrypoint, "entrypoint")
    task = Task(
        id=f"local/{folder.name}",
        source="local",
        problem_statement=problem_statement or f"`{shlex.join(command)}` fails. Find the cause and repair it.\n",
        workspace=workspace_from_folder(folder).model_copy(update={"environment": environment}),
        entrypoint=command,
        debug_entrypoint=None if debug_entrypoint is None else _words(debug_entrypoint, "debug_entrypoint"),
        setup=tuple(_words(words, "setup") for words in setup),
        ignore=tuple(ignore),
        readonly=tuple(readonly),
        tags={"project": folder.name},
    )
    return [(task, Oracle(task_id=task.id, gold_patch=""))]


def load_nightmare(path: str | Path, *, on_error: OnError = refuse) -> list[tuple[Task, Oracle]]:
    """Every folder in `path` that holds code and a `test.py`, sorted by name; or `path` itself when it is one.

    The folders' `.debugignore` and `.debugreadonly` decide what the agent may see and write; `test.py` is read-only
    in any case. Raises TaskError, unless `on_error` takes that of a single folder.
    """
    root = Path(path)
    if not root.is_dir():
        raise TaskError(f"no folder {path}: give the folder that holds the task folders")
    folders = [root] if (root / TEST).is_file() else sorted(child for child in root.iterdir() if _is_candidate(child))
    if not folders:
        raise TaskError(f"{path} holds no task folders: each has its code and a {TEST}")
    return load_entries((folder.resolve() for folder in folders), _nightmare, on_error)


def _is_candidate(folder: Path) -> bool:
    return folder.is_dir() and not folder.name.startswith((".", "_"))


def _nightmare(folder: Path) -> tuple[Task, Oracle]:
    if not (folder / TEST).is_file():
        raise TaskError(f"task nightmare/{folder.name}: {folder} has no tests: add a {TEST}")
    ((task, _),) = load_local(folder, ("python", "-m", "pytest", "-q", TEST), readonly=(f"/{TEST}",))
    task = task.model_copy(update={"id": f"nightmare/{folder.name}", "source": "nightmare"})
    return task, Oracle(task_id=task.id, gold_patch="")


def _words(command: str | Sequence[str], name: str) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(command) if isinstance(command, str) else command)
    except ValueError as error:
        raise TaskError(f"{name} {command!r} cannot be split into words: {error}") from None
    if not words:
        raise TaskError(f"{name} is empty: give the command that runs the tests")
    return ("python", "-m", *words) if words[0] == "pytest" else words

"""Tasks from folders on disk: a user's own repository, or a folder of many small tasks.

`load_local` takes a repository, `load_nightmare` folders with a `test.py` each. Neither comes with an answer: the
oracle is empty, and `check` can only show that the tests fail.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from gumshoe.env.inside.programs.project import FOREIGN
from gumshoe.env.patterns import Patterns
from gumshoe.env.tasks.projects import PYTEST, digest_of
from gumshoe.env.tasks.taskset import OnError, load_entries, refuse
from gumshoe.errors import TaskError
from gumshoe.records import Oracle, Task, WorkspaceSpec

DEFAULT_COMMAND = shlex.join(PYTEST)
"""How the tests of a repository run where nothing else is said."""
TEST = "test.py"
_VARIABLE = re.compile(r"[A-Za-z_]\w*=")


def load_local(
    path: str | Path,
    entrypoint: str | Sequence[str] = DEFAULT_COMMAND,
    debug_entrypoint: str | Sequence[str] | None = None,
    problem_statement: str = "",
    setup: Sequence[str | Sequence[str]] = (),
    ignore: Sequence[str] = (),
    readonly: Sequence[str] = (),
    environment: str | None = None,
) -> list[tuple[Task, Oracle]]:
    """The repository in the folder `path` as one task, `local/<name of the folder>`.

    Its files `.debugignore` and `.debugreadonly` hold in addition to `ignore` and `readonly`. Commands are lists of
    words, or strings that are split into words as a shell would; a bare `pytest` is run as a module of the sandbox's
    Python, where the program may not be installed. Variables before an entrypoint, as in `PYTHONPATH=src pytest` or
    `env PYTHONPATH=src pytest`, are set for every program, word for word: `$NAME` stays as it is. Folders such as
    `.venv` and `node_modules` that `.gitignore` names are left out, unless a command names them. Raises TaskError.
    """
    if not Path(path).is_dir():
        raise TaskError(f"no folder {path}: give the folder of a repository")
    folder = Path(path).resolve()
    variables, command = _split_variables(_words(entrypoint, "entrypoint"))
    failing = shlex.join([*(["env", *variables] if variables else []), *command])
    debugged = None
    if debug_entrypoint is not None:
        more, debugged = _split_variables(_words(debug_entrypoint, "debug_entrypoint"))
        variables = _merge_variables(variables, more)
    commands = (command, debugged or (), *(_words(words, "setup") for words in setup))
    without = _installed_folders(folder, " ".join(chain.from_iterable(commands)))
    workspace = WorkspaceSpec(
        path=str(folder), content=digest_of(folder, without=without), overlay=dict.fromkeys(without)
    )
    task = Task(
        id=f"local/{folder.name}",
        source="local",
        problem_statement=problem_statement or f"`{failing}` fails. Find the cause and repair it.\n",
        workspace=workspace.model_copy(update={"environment": environment, "activate": _export(variables)}),
        entrypoint=command,
        debug_entrypoint=debugged,
        setup=tuple(commands[2:]),
        ignore=tuple(ignore),
        readonly=tuple(readonly),
        tags={"project": folder.name},
    )
    return [(task, Oracle(task_id=task.id, gold_patch=""))]


def _installed_folders(folder: Path, commands: str) -> list[str]:
    """The ignored folders that installed packages lie in, unless the commands name them."""
    try:
        ignored = Patterns((folder / ".gitignore").read_text("utf-8", "replace").splitlines())
    except OSError:
        return []
    found: list[str] = []
    for parent, folders, _ in os.walk(folder):
        own = Path(parent).relative_to(folder)
        found += [str(own / name) for name in folders if name in FOREIGN and name not in commands]
        folders[:] = [name for name in folders if name not in FOREIGN]
    return sorted(path for path in found if ignored.match(path))


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
    return words


def _split_variables(words: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The variables before a command, and the command itself."""
    start = 1 if words[0] == "env" and len(words) > 1 and _VARIABLE.match(words[1]) else 0
    end = next((index for index in range(start, len(words)) if not _VARIABLE.match(words[index])), len(words))
    command = words[end:]
    if not command:
        raise TaskError(f"{shlex.join(words)} only sets variables: give the command that runs the tests behind them")
    return words[start:end], ("python", "-m", *command) if command[0] == "pytest" else command


def _merge_variables(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    """The variables of two commands."""
    known = dict(one.split("=", 1) for one in first)
    for name, value in (one.split("=", 1) for one in second):
        if known.setdefault(name, value) != value:
            raise TaskError(f"entrypoint and debug_entrypoint set {name} differently: give both the same value")
    return tuple(f"{name}={value}" for name, value in known.items())


def _export(variables: Sequence[str]) -> str:
    """The code that sets variables, each NAME=VALUE."""
    return f"export {shlex.join(variables)}" if variables else ""

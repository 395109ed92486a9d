"""Lists of tasks: read entry by entry, and stored as a task set.

A task set is a folder with `tasks.jsonl` and, separately, `oracles.jsonl`, one record per line: handing someone the
tasks does not hand them the answers. Workspaces are named in a way that another machine can resolve (see `projects`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from gumshoe.env.tasks.projects import digest_of, resolve_project
from gumshoe.errors import TaskError
from gumshoe.records import Oracle, Record, Task
from gumshoe.storage import describe, read_records, write_jsonl

TASKS = "tasks.jsonl"
ORACLES = "oracles.jsonl"

EntryT = TypeVar("EntryT")
RecordT = TypeVar("RecordT", bound=Record)
OnError = Callable[[TaskError], None]
"""Told of an entry that is not a task; loading goes on with the others unless it raises."""


def refuse(error: TaskError) -> None:
    """Ends the loading at the first entry that is broken."""
    raise error


def load_entries(
    entries: Iterable[EntryT], make: Callable[[EntryT], tuple[Task, Oracle]], on_error: OnError
) -> list[tuple[Task, Oracle]]:
    """What `make` makes of the entries; its TaskErrors, and values that no task can have, go to `on_error`."""
    made: list[tuple[Task, Oracle]] = []
    for number, entry in enumerate(entries, 1):
        try:
            made.append(make(entry))
        except TaskError as error:
            on_error(error)
        except ValidationError as error:
            on_error(TaskError(f"entry {number} is not a task: {describe(error)}"))
    return made


@contextmanager
def named(where: str) -> Generator[None]:
    """Puts the name of what is read before the message of a TaskError."""
    try:
        yield
    except TaskError as error:
        raise TaskError(f"{where}: {error}") from None


def is_taskset(folder: Path) -> bool:
    """Whether `folder` holds a task set."""
    return (folder / TASKS).is_file()


def load_taskset(path: str | Path, *, on_error: OnError = refuse) -> list[tuple[Task, Oracle]]:
    """The tasks in the folder `path`, in the order of tasks.jsonl.

    Raises TaskError when a file is missing or damaged, an id appears twice, an oracle is missing, or a project is;
    `on_error` may take that of a single task.
    """
    folder = Path(path)
    pairs = stored_taskset(folder)
    oracles = {oracle.task_id: oracle for _, oracle in pairs}
    digests: dict[Path, str] = {}
    return load_entries(
        [task for task, _ in pairs], lambda task: (_resolved(task, folder, digests), oracles[task.id]), on_error
    )


def stored_taskset(folder: Path) -> list[tuple[Task, Oracle]]:
    """The tasks of a set as its files hold them: the workspaces are relative to the folder, and need not be there.

    Raises TaskError when a file is missing or damaged, an id appears twice, or an oracle is missing.
    """
    tasks = _read(folder / TASKS, Task)
    oracles = {oracle.task_id: oracle for oracle in _read(folder / ORACLES, Oracle)}
    seen: set[str] = set()
    for task in tasks:
        if task.id in seen:
            raise TaskError(f"{folder / TASKS} holds task {task.id} twice")
        if task.id not in oracles:
            raise TaskError(f"{folder / ORACLES} has no oracle for task {task.id}")
        seen.add(task.id)
    return [(task, oracles[task.id]) for task in tasks]


def write_taskset(folder: Path, tasks: Iterable[tuple[Task, Oracle]]) -> None:
    """Replaces each file atomically, the oracles first: a reader in between sees the old tasks with the new oracles.

    Workspaces are written as they are given: name them relocatably. Equal tasks give equal bytes.
    """
    pairs = list(tasks)
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / ORACLES, [oracle for _, oracle in pairs])
    _write(folder / TASKS, [task for task, _ in pairs])


def keep_falsifiable(folder: Path, found: Mapping[str, Mapping[str, tuple[int, ...]]]) -> None:
    """Writes what makes the tests of tasks fail, by the task's id, to the oracles of a set. Raises TaskError."""
    oracles = _read(folder / ORACLES, Oracle)
    _write(
        folder / ORACLES,
        [
            one.model_copy(update={"falsifiable": dict(found[one.task_id])}) if one.task_id in found else one
            for one in oracles
        ],
    )


def _resolved(task: Task, folder: Path, digests: dict[Path, str]) -> Task:
    """The task with the place of its project, and a digest of it that is made once for all its tasks."""
    if task.workspace.path is None:
        return task
    with named(f"task {task.id}"):
        path = resolve_project(task.workspace.path, folder)
        if path not in digests:
            digests[path] = digest_of(path)
    found = {"path": str(path), "content": digests[path]}
    return task.model_copy(update={"workspace": task.workspace.model_copy(update=found)})


def _read(path: Path, model: type[RecordT]) -> list[RecordT]:
    if not path.exists():
        raise TaskError(f"no file {path}: a task set holds {TASKS} and {ORACLES}")
    return list(read_records(path, model, error=TaskError))


def _write(path: Path, records: Iterable[Record]) -> None:
    write_jsonl(path, (record.model_dump(mode="json", exclude_defaults=True) for record in records))

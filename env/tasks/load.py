"""One way in to every task source."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from gumshoe.env.tasks.casebook import load_casebook
from gumshoe.env.tasks.folders import load_local, load_nightmare
from gumshoe.env.tasks.swebench import load_swebench
from gumshoe.env.tasks.taskset import is_taskset, load_taskset
from gumshoe.errors import TaskError
from gumshoe.records import Oracle, Task

__all__ = ["load_tasks"]

Loader = Callable[..., list[tuple[Task, Oracle]]]

SOURCES: dict[str, Loader] = {
    "casebook": load_casebook,
    "local": load_local,
    "nightmare": load_nightmare,
    "swebench": load_swebench,
    "synth": load_taskset,
}


def load_tasks(
    source: str,
    *,
    ids: Collection[str] | None = None,
    tags: Mapping[str, str | Collection[str]] | None = None,
    limit: int | None = None,
    **options: Any,
) -> list[tuple[Task, Oracle]]:
    """The tasks of a source with their oracles, in the order of the source.

    Args:
        source: `casebook`, `synth`, `nightmare`, `local` or `swebench` (the option `path` may stand behind a colon:
            `nightmare:FOLDER`), or the folder of a task set itself, one with tasks.jsonl and oracles.jsonl.
        ids: only these tasks.
        tags: only tasks with this tag value, or one of these, such as `{"split": "train"}`.
        limit: at most so many, after the other filters.
        options: options of the source itself.

    Raises:
        TaskError: the source does not exist or is damaged, an option is not one of its own, or it has no task of
            one of the `ids`.
    """
    tasks = _read(source, options)
    if ids is not None:
        _refuse_unknown(source, ids, tasks)
    chosen = [pair for pair in tasks if (ids is None or pair[0].id in ids) and _carries(pair[0], tags or {})]
    return chosen if limit is None else chosen[:limit]


def _read(source: str, options: dict[str, Any]) -> list[tuple[Task, Oracle]]:
    if source in SOURCES:
        return _call(source, SOURCES[source], options)
    name, colon, path = source.partition(":")
    if colon and path and name in SOURCES:
        return _call(name, SOURCES[name], {"path": path, **options})
    if is_taskset(Path(source)):
        return _call(source, load_taskset, {"path": source, **options})
    known = ", ".join(sorted(SOURCES))
    if Path(source).exists():
        raise TaskError(f"{source} is not a task set: it has no tasks.jsonl (sources by name: {known})")
    raise TaskError(f"no task source {source!r}: give {known} or the folder of a task set")


def _call(source: str, loader: Loader, options: dict[str, Any]) -> list[tuple[Task, Oracle]]:
    try:
        bound = inspect.signature(loader).bind(**options)
    except TypeError as error:
        known = ", ".join(inspect.signature(loader).parameters)
        raise TaskError(f"task source {source}: {error} (its options: {known})") from None
    return loader(*bound.args, **bound.kwargs)


def _carries(task: Task, tags: Mapping[str, str | Collection[str]]) -> bool:
    return all(task.tags.get(key) in ((value,) if isinstance(value, str) else value) for key, value in tags.items())


def _refuse_unknown(source: str, ids: Collection[str], tasks: list[tuple[Task, Oracle]]) -> None:
    missing = sorted(set(ids) - {task.id for task, _ in tasks})
    if missing:
        raise TaskError(f"{source} has no task {missing[0]!r}: see `gumshoe tasks list {source}`")

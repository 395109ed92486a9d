"""One way in to every task source."""

from __future__ import annotations

import functools
import inspect
import reprlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from gumshoe.env.tasks.casebook import load_casebook
from gumshoe.env.tasks.checkouts import load_aider, load_bugsinpy, load_pyter, load_quixbugs
from gumshoe.env.tasks.folders import load_local, load_nightmare
from gumshoe.env.tasks.projects import digest_of
from gumshoe.env.tasks.r2egym import R2EGYM
from gumshoe.env.tasks.swebench import SWEBENCH
from gumshoe.env.tasks.swesmith import SWESMITH
from gumshoe.env.tasks.taskset import OnError, is_taskset, load_taskset, named, refuse
from gumshoe.errors import GumshoeError, TaskError
from gumshoe.plugins import SOURCES as SOURCE_PLUGINS
from gumshoe.plugins import announced, is_path, load_path, raised_in
from gumshoe.records import Oracle, Task
from gumshoe.text import unknown_choice

Loader = Callable[..., list[tuple[Task, Oracle]]]

ROWS = {"r2egym": R2EGYM, "swebench": SWEBENCH, "swesmith": SWESMITH}
SOURCES: dict[str, Loader] = {
    "aider": load_aider,
    "bugsinpy": load_bugsinpy,
    "casebook": load_casebook,
    "local": load_local,
    "nightmare": load_nightmare,
    "pyter": load_pyter,
    "quixbugs": load_quixbugs,
    "synth": load_taskset,  # a task set by the name of the command that writes it
    **{name: source.load for name, source in ROWS.items()},
}
SKIPPING = "on_error"


def load_tasks(
    source: str,
    *,
    ids: Collection[str] | None = None,
    tags: Mapping[str, str | Collection[str]] | None = None,
    limit: int | None = None,
    on_error: OnError = refuse,
    **options: Any,
) -> list[tuple[Task, Oracle]]:
    """The tasks of a source with their oracles, in the order of the source.

    Args:
        source: the name of a source, such as `casebook` or `swebench` (the option `path` may follow a colon:
            `nightmare:FOLDER`), or the folder of a task set itself, one with tasks.jsonl and oracles.jsonl, or a
            function of your own as `package.module:function`: it gets `options`, and returns such pairs.
        ids: only these tasks.
        tags: only tasks with this tag value, or one of these, such as `{"split": "train"}`.
        limit: maximum number of tasks, after the other filters.
        on_error: told of each entry of the source that is not a task, which is then left out; without it the first one
            is raised.
        options: options of the source itself.

    Raises:
        TaskError: the source does not exist or is damaged, an option is not one of its own, it has two tasks with one
            id, or no task of one of the `ids`.
    """
    tasks = _read(source, options, on_error)
    twice = [name for name, count in Counter(task.id for task, _ in tasks).items() if count > 1]
    if twice:
        raise TaskError(f"task source {source}: it has several tasks that are called {twice[0]!r}")
    if ids is not None:
        _refuse_unknown(source, ids, tasks)
    chosen = [pair for pair in tasks if (ids is None or pair[0].id in ids) and _carries(pair[0], tags or {})]
    return chosen if limit is None else chosen[:limit]


def graded_task(task: Task, oracle: Oracle) -> Task:
    """The task with the tests that decide, and a command that runs them; only those that come as rows differ."""
    source = ROWS.get(task.source)
    return task if source is None else source.graded(task, oracle)


def _read(source: str, options: dict[str, Any], on_error: OnError) -> list[tuple[Task, Oracle]]:
    if source in SOURCES:
        return _call(source, SOURCES[source], options, on_error)
    name, colon, path = source.partition(":")
    if colon and path and name in SOURCES:
        return _call(name, SOURCES[name], {"path": path, **options}, on_error)
    if is_taskset(Path(source)):
        return _call(source, load_taskset, {"path": source, **options}, on_error)
    plugins = announced(SOURCE_PLUGINS)
    if source in plugins or is_path(source):
        return _call(source, _checked(source, load_path(plugins.get(source, source), "task source")), options, on_error)
    known = sorted({*SOURCES, *plugins})
    if Path(source).exists():
        raise TaskError(f"{source} is not a task set: it has no tasks.jsonl (sources by name: {', '.join(known)})")
    raise TaskError(
        f"{unknown_choice('task source', source, known)} (or give the folder of a task set, or a path, "
        "package.module:function)"
    )


def _call(source: str, loader: Loader, options: dict[str, Any], on_error: OnError) -> list[tuple[Task, Oracle]]:
    signature = inspect.signature(loader)
    skipping = {SKIPPING: on_error} if SKIPPING in signature.parameters else {}
    try:
        bound = signature.bind(**options, **skipping)
    except TypeError as error:
        known = ", ".join(name for name in signature.parameters if name != SKIPPING)
        raise TaskError(f"task source {source}: {error} (its options: {known})") from None
    return [(_with_content(task), oracle) for task, oracle in loader(*bound.args, **bound.kwargs)]


def _checked(source: str, loader: object) -> Loader:
    """A function of one's own, which may return or raise anything, as one that returns pairs or raises GumshoeError."""
    if not callable(loader):
        raise TaskError(f"task source {source}: it is no function")

    @functools.wraps(loader)
    def load(*arguments: Any, **options: Any) -> list[tuple[Task, Oracle]]:
        try:
            made = loader(*arguments, **options)
            pairs: list[Any] = list(made) if isinstance(made, Iterable) else [made]
        except GumshoeError:
            raise
        except Exception as error:
            raise TaskError(f"task source {source} failed: {raised_in(loader, error)}") from None
        wrong = [pair for pair in pairs if not _is_pair(pair)]
        if wrong:
            found = reprlib.repr(wrong[0])
            raise TaskError(f"task source {source}: it must return pairs of a Task and its Oracle, not {found}")
        return pairs

    return load


def _is_pair(pair: object) -> bool:
    if not isinstance(pair, list | tuple) or len(pair) != 2:
        return False
    return isinstance(pair[0], Task) and isinstance(pair[1], Oracle)


def _with_content(task: Task) -> Task:
    """The task with a digest of its folder, so that its hash is the same on every machine."""
    spec = task.workspace
    if spec.path is None or spec.content is not None:
        return task
    with named(f"task {task.id}"):
        digest = digest_of(Path(spec.path))
    return task.model_copy(update={"workspace": spec.model_copy(update={"content": digest})})


def _carries(task: Task, tags: Mapping[str, str | Collection[str]]) -> bool:
    return all(task.tags.get(key) in ((value,) if isinstance(value, str) else value) for key, value in tags.items())


def _refuse_unknown(source: str, ids: Collection[str], tasks: list[tuple[Task, Oracle]]) -> None:
    missing = sorted(set(ids) - {task.id for task, _ in tasks})
    if missing:
        raise TaskError(f"{source} has no task {missing[0]!r}: see `gumshoe tasks list {source}`")

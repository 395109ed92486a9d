"""The command-line arguments that several commands have: a repository on disk, a task, a policy."""

from __future__ import annotations

import argparse
import difflib
import shlex
from pathlib import Path
from typing import Any

from gumshoe.env.environments import environment_of
from gumshoe.env.tasks import load_tasks
from gumshoe.env.tasks.folders import DEFAULT_COMMAND
from gumshoe.env.tasks.load import SOURCES
from gumshoe.env.tasks.taskset import TASKS, is_taskset
from gumshoe.errors import TaskError
from gumshoe.records import Task
from gumshoe.storage import read_records

__all__ = ["add_repository_arguments", "choose_task", "policy_of", "repository_options"]

DEFAULT_SOURCE = "casebook"


def add_repository_arguments(parser: argparse.ArgumentParser, *, entrypoint: str) -> None:
    """Adds the folder and how its tests run; `entrypoint` says what that command is for."""
    parser.add_argument("path", type=Path, metavar="PATH", help="folder of the repository")
    parser.add_argument(
        "--entrypoint",
        metavar="COMMAND",
        help=f"{entrypoint} (default: {DEFAULT_COMMAND}, or the command of the set named by --environment)",
    )
    parser.add_argument(
        "--environment", metavar="NAME", help="environment created by gumshoe harvest: its name, or the set"
    )


def repository_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """The options of the task source `local`, except for the path. Raises TaskError for an unknown environment."""
    options = {"entrypoint": _command(arguments)}  # Refusing an empty command is up to the task source.
    if arguments.environment:
        options["environment"] = environment_of(arguments.environment)
    return options


def _command(arguments: argparse.Namespace) -> str:
    """The command given, else the one by which harvest ran the tests, else pytest."""
    if arguments.entrypoint is not None:
        return arguments.entrypoint
    if arguments.environment and is_taskset(Path(arguments.environment)):
        for task in read_records(Path(arguments.environment) / TASKS, Task, error=TaskError):
            return shlex.join(task.entrypoint)
    return DEFAULT_COMMAND


def policy_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """What --model and --endpoint say about the policy; empty if they say nothing."""
    named = {"model": arguments.model, "base_url": arguments.endpoint}
    return {name: value for name, value in named.items() if value is not None}


def choose_task(text: str) -> Task:
    """The task that `text` names: `SOURCE:ID`, an id from the casebook, or a source that has only one task.

    The last part of an id is enough if no other task has it.

    Raises:
        TaskError: there is no such task, or more than one.
    """
    source, colon, name = text.rpartition(":")
    if colon and _is_source(source):
        return _only(source, name)
    if _is_source(text):
        return _only(text, None)
    if colon:
        return _only(source, name)
    try:
        return _only(DEFAULT_SOURCE, text)
    except TaskError as error:
        raise TaskError(_meant(Path(text)) or str(error)) from None


def _meant(path: Path) -> str | None:
    """What to write instead, for the path of a folder or of a task in a set."""
    for folder in path.parents:
        if is_taskset(folder):
            name = path.relative_to(folder)
            return f"{path} is not a task: for the task {name} of the set {folder}, write {folder}:{name}"
    if path.is_dir():
        return f"{path} is not a task set: it has no {TASKS}; for a repository of your own, write local:{path}"
    return None


def _is_source(text: str) -> bool:
    """Whether tasks can be loaded from it: a source that needs a path does not count without one."""
    kind, colon, path = text.partition(":")
    return text == DEFAULT_SOURCE or bool(colon and path and kind in SOURCES) or is_taskset(Path(text))


def _only(source: str, name: str | None) -> Task:
    tasks = [task for task, _ in load_tasks(source)]
    found = tasks if name is None else [task for task in tasks if task.id == name]
    found = found or [task for task in tasks if task.id.rpartition("/")[2] == name]
    if len(found) == 1:
        return found[0]
    listing = f"see `gumshoe tasks list {source}`"
    if found:
        raise TaskError(f"{source} has {len(found)} tasks: name one, such as {source}:{found[0].id} ({listing})")
    short = {task.id.rpartition("/")[2]: task.id for task in tasks}
    nearest = difflib.get_close_matches(str(name), [*short, *short.values()], n=1)
    hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
    raise TaskError(f"{source} has no task {name!r}{hint} ({listing})")

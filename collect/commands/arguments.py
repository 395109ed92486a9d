"""The command-line arguments that several commands have: a repository on disk, a policy."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import Any

from gumshoe.env.inside.programs.project import holds_tests
from gumshoe.env.tasks.folders import DEFAULT_COMMAND
from gumshoe.env.tasks.taskset import TASKS, is_taskset
from gumshoe.env.virtualenvs import environment_of
from gumshoe.errors import TaskError
from gumshoe.records import Task
from gumshoe.storage import read_records


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
    """The options of the task source `local`, except for the path.

    Raises TaskError for a file in place of a folder, and for an unknown environment.
    """
    if arguments.path.is_file():
        is_outside = arguments.path.is_absolute() or ".." in arguments.path.parts
        folder = arguments.path.parent if is_outside else Path()
        runner = "pytest" if holds_tests(arguments.path.name) else "python"
        raise TaskError(
            f"{arguments.path} is a file: give the folder of its repository, as in "
            f'gumshoe {arguments.command} {folder} --entrypoint "{runner} {arguments.path.relative_to(folder)}"'
        )
    options = {"entrypoint": _command(arguments)}  # Refusing an empty command is up to the task source.
    if arguments.environment:
        options["environment"] = environment_of(arguments.environment)
    return options


def _command(arguments: argparse.Namespace) -> str:
    """The command given, else the one by which harvest ran the tests, else pytest.

    Single tests that harvest left out are run here: the failing one may be among them.
    """
    if arguments.entrypoint is not None:
        return arguments.entrypoint
    if arguments.environment and is_taskset(Path(arguments.environment)):
        for task in read_records(Path(arguments.environment) / TASKS, Task, error=TaskError):
            return shlex.join(word for word in task.entrypoint if not word.startswith("--deselect="))
    return DEFAULT_COMMAND


def policy_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """What --model and --endpoint say about the policy; empty if they say nothing."""
    named = {"model": arguments.model, "base_url": arguments.endpoint}
    return {name: value for name, value in named.items() if value is not None}

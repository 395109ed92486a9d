"""The bug that the environment's benchmarks and the soaks play, and the edit that fixes it."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gumshoe.env import SandboxConfig
from gumshoe.env.diff.parse import gold_lines, parse_patch
from gumshoe.env.tasks import load_tasks
from gumshoe.records import Oracle, Task


@dataclass(frozen=True)
class Bug:
    """A bug whose fix changes one place in one file.

    Args:
        task: the task.
        oracle: its oracle.
        line: the first wrong line of the file.
        edit: the fix, as arguments of `rewrite`.
    """

    task: Task
    oracle: Oracle
    line: int
    edit: Mapping[str, Any]

    @property
    def path(self) -> str:
        """The file with the wrong line."""
        return str(self.edit["path"])

    def sandbox(self, kind: str) -> SandboxConfig:
        """The sandbox; if the task has no environment of its own, pytest loads no plugins it happens to find."""
        plain = {} if self.task.workspace.environment else {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        return SandboxConfig.model_validate({"kind": kind, "env": plain})

    def report(self) -> dict[str, Any]:
        """Arguments of `report` that name the wrong line."""
        place = {"path": self.path, "start": self.line, "end": self.line, "why": "here"}
        return {"locations": [place], "findings": [], "hypothesis": "this line is wrong"}

    def episode(self) -> list[tuple[str, dict[str, Any]]]:
        """One scripted debugging episode, as tools and their arguments: look, run, break, see, repair, run, submit."""
        return [
            ("listdir", {}),
            ("eval", {}),
            ("view", {"path": self.path}),
            ("pdb", {"command": f"b {self.path}:{self.line}\nc\nlocals"}),
            ("rewrite", dict(self.edit)),
            ("eval", {}),
            ("submit", {}),
        ]


def find_bug(source: str, task_id: str) -> Bug:
    """A bug of a task source, such as `casebook` or the folder of a set that `gumshoe harvest` made.

    Raises SystemExit where its gold patch changes more than one place.
    """
    ((task, oracle),) = load_tasks(source, ids=[task_id])
    return as_bug(task, oracle)


def as_bug(task: Task, oracle: Oracle) -> Bug:
    """A task and its oracle as a bug. Raises SystemExit where its gold patch changes more than one place."""
    edit = gold_edit(oracle)
    if edit is None:
        raise SystemExit(f"{task.id} is repaired in several places: choose a bug with one")
    return Bug(task, oracle, min(gold_lines(oracle.gold_patch)[edit["path"]]), edit)


def gold_edit(oracle: Oracle) -> dict[str, Any] | None:
    """The gold patch as arguments of `rewrite`; None unless it is a single hunk with lines of the buggy file."""
    files = parse_patch(oracle.gold_patch)
    if len(files) != 1 or len(files[0].hunks) != 1 or files[0].source is None:
        return None
    (hunk,) = files[0].hunks
    if hunk.source_length == 0:
        return None
    place = {"path": files[0].source, "start": hunk.source_start, "end": hunk.source_start + hunk.source_length - 1}
    return {**place, "code": "".join(line.value for line in hunk if line.is_added or line.is_context)}


def with_copy(task: Task, folder: Path) -> Task:
    """The task with its repository copied into the folder: a task set refers to nothing outside its folder."""
    source = Path(str(task.workspace.path))
    copy = folder / "projects" / f"{source.parent.name}-{source.name}"
    if not copy.exists():
        shutil.copytree(source, copy, symlinks=True)
    return task.model_copy(update={"workspace": task.workspace.model_copy(update={"path": str(copy)})})

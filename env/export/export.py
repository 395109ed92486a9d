"""Writes a set of tasks as rows for the official SWE-bench harness."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from gumshoe.env.export.swebench import swebench_refusal, write_swebench_row
from gumshoe.errors import TaskError
from gumshoe.records import Oracle, Task
from gumshoe.storage import new_folder

__all__ = ["Exported", "export_tasks"]


@dataclass(frozen=True)
class Exported:
    """How many tasks were written, and why others were not, by their ids."""

    count: int
    refused: dict[str, str]


def export_tasks(tasks: Iterable[tuple[Task, Oracle]], out: Path, *, base_image: str | None = None) -> Exported:
    """Writes tasks to a new folder.

    Args:
        tasks: with their answers.
        out: replaced when all is written.
        base_image: what images are built from; None: the Python image for the task's version.

    Raises:
        TaskError: no task can be exported.
    """
    refused: dict[str, str] = {}
    count = 0
    with new_folder(out) as fresh:
        for task, oracle in tasks:
            reason = swebench_refusal(task, oracle)
            if reason is None:
                try:
                    write_swebench_row(task, oracle, fresh, base_image)
                    count += 1
                except TaskError as error:
                    reason = str(error).removeprefix(f"task {task.id}: ")
            if reason is not None:
                refused[task.id] = reason
        if not count:
            first = next(iter(refused.items()), None)
            raise TaskError("no task can be exported to swebench" + (f": {first[0]}: {first[1]}" if first else ""))
    return Exported(count, refused)

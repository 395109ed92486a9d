"""Writes a set of tasks in the form of another runner."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from gumshoe.env.export.harbor import harbor_refusal, write_harbor_task
from gumshoe.env.export.swebench import swebench_refusal, write_swebench_row
from gumshoe.env.export.verifiers import finish_package, verifiers_refusal, write_verifiers_task
from gumshoe.errors import TaskError
from gumshoe.records import Oracle, Task
from gumshoe.storage import new_folder

__all__ = ["TARGETS", "Exported", "export_tasks"]


@dataclass(frozen=True)
class Target:
    """A runner: why it cannot take a task, how one is written for it, and what is written around them all."""

    refusal: Callable[[Task, Oracle], str | None]
    write: Callable[[Task, Oracle, Path, str | None], None]
    finish: Callable[[Path, str, int], None] = lambda folder, name, count: None


@dataclass(frozen=True)
class Exported:
    """How many tasks were written, and why others were not, by their ids."""

    count: int
    refused: dict[str, str]


TARGETS: dict[str, Target] = {
    "harbor": Target(harbor_refusal, write_harbor_task),
    "swebench": Target(swebench_refusal, write_swebench_row),
    "verifiers": Target(verifiers_refusal, write_verifiers_task, finish_package),
}


def export_tasks(
    tasks: Iterable[tuple[Task, Oracle]], target: str, out: Path, *, base_image: str | None = None
) -> Exported:
    """Writes tasks to a new folder.

    Args:
        tasks: with their answers.
        target: one of TARGETS.
        out: replaced when all is written.
        base_image: what images are built from; None: the Python image for the task's version.

    Raises:
        TaskError: no task can be exported.
    """
    runner = TARGETS[target]
    refused: dict[str, str] = {}
    count = 0
    with new_folder(out) as fresh:
        for task, oracle in tasks:
            why = runner.refusal(task, oracle)
            if why is None:
                try:
                    runner.write(task, oracle, fresh, base_image)
                    count += 1
                except TaskError as error:
                    why = str(error).removeprefix(f"task {task.id}: ")
            if why is not None:
                refused[task.id] = why
        if not count:
            first = next(iter(refused.items()), None)
            raise TaskError(f"no task can be exported to {target}" + (f": {first[0]}: {first[1]}" if first else ""))
        runner.finish(fresh, out.name, count)
    return Exported(count, refused)

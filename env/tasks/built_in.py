"""Which tasks are built in, so that their code, tests and gold patch need no isolation."""

from __future__ import annotations

import functools
from pathlib import Path

from gumshoe.env.tasks.casebook import load_case
from gumshoe.env.tasks.projects import CASEBOOK
from gumshoe.records import Oracle, Task

__all__ = ["is_built_in"]


def is_built_in(task: Task, oracle: Oracle | None = None) -> bool:
    """Whether all that running this task starts comes with Gumshoe.

    That is a case of the casebook as it is bundled, or its clean project: the same folder, overlay and commands, and,
    where an oracle is given, the same answer. Ids, sources and tags prove nothing: whoever wrote a task set chose them.
    What the agent is told and shown, and its limits, may differ. A synthetic bug of a bundled project does not count,
    as the file that it is read from could hold anything.
    """
    folder = _case_folder(task.workspace.path)
    if folder is None:
        return False
    case, answer = _case(folder)
    spec, own = task.workspace, case.workspace
    same_place = spec.model_copy(update={"path": own.path, "content": own.content})
    return (
        same_place in (own, own.model_copy(update={"overlay": {}}))
        and _commands(task) == _commands(case)
        and (oracle is None or not _has_code(oracle) or _is_same(oracle, answer))
    )


def _case_folder(path: str | None) -> Path | None:
    """The folder of the bundled case whose project this is."""
    if path is None:
        return None
    project = Path(path).resolve()
    bundled = project.name == "repo" and project.parent.parent == CASEBOOK and (project.parent / "case.yaml").is_file()
    return project.parent if bundled else None


@functools.cache
def _case(folder: Path) -> tuple[Task, Oracle]:
    return load_case(folder)


def _commands(task: Task) -> tuple[object, ...]:
    return task.entrypoint, task.debug_entrypoint, task.setup


def _is_same(oracle: Oracle, answer: Oracle) -> bool:
    return oracle.model_copy(update={"falsifiable": answer.falsifiable}) == answer


def _has_code(oracle: Oracle) -> bool:
    return bool(oracle.gold_patch or oracle.test_patch)

"""Compiles the tests of packages before many of their tasks are run."""

from __future__ import annotations

from collections.abc import Iterable

from gumshoe.env.config import SandboxConfig
from gumshoe.env.sandboxes.byte_code import is_of_tests, keep_byte_code, place_of
from gumshoe.env.sandboxes.open import open_sandbox
from gumshoe.records import Task

__all__ = ["compile_tests"]

MOST_BYTES = 32 << 20


def compile_tests(tasks: Iterable[Task], config: SandboxConfig) -> None:
    """Has pytest collect the tests of each project once, without the task's bug, and keeps the byte code.

    What is known already is skipped, and so is a task without such byte code. Raises as `open_sandbox`.
    """
    missing = {place: task for task in tasks if (place := place_of(task)) is not None and not place.is_file()}
    for place, task in missing.items():
        keep_byte_code(place, _compiled(task, config))


def _compiled(task: Task, config: SandboxConfig) -> dict[str, bytes]:
    """Byte code by its path; nothing where it is too much."""
    clean = task.model_copy(update={"workspace": task.workspace.model_copy(update={"overlay": {}})})
    argv = [*task.entrypoint, "--collect-only"]
    with open_sandbox(clean, config, trusted=True) as sandbox:
        sandbox.run(argv, env={"PYTHONDONTWRITEBYTECODE": ""}, timeout=task.limits.command_timeout_s)
        found = [entry for entry in sandbox.walk() if entry.kind == "file" and is_of_tests(entry.path)]
        if sum(entry.size for entry in found) > MOST_BYTES:
            return {}
        return {entry.path: sandbox.read_file(entry.path) for entry in found}

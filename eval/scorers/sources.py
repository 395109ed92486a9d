"""The buggy files of a task, read from where the task keeps them, or fetched from its image beforehand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

from gumshoe.records import Task
from gumshoe.tools.spans import Span, spans

__all__ = ["Sources"]


class Sources:
    """Looks up the functions in a task's files.

    Args:
        tasks: the tasks whose files are looked up.
        fetched: by task id, the files of tasks that live in a container image; no other files of these are known.
    """

    def __init__(self, tasks: Iterable[Task], fetched: Mapping[str, Mapping[str, str | None]] | None = None) -> None:
        self._tasks = {task.id: task for task in tasks}
        self._fetched = fetched or {}
        self._spans = lru_cache(maxsize=4096)(self._read_spans)

    def spans(self, task_id: str, path: str) -> tuple[Span, ...] | None:
        """Functions and classes of a file before the repair; None if there is no such readable Python file."""
        return self._spans(task_id, path)

    def text(self, task_id: str, path: str) -> str | None:
        """The file before the repair; None where it cannot be read, or would lie outside the repository."""
        task = self._tasks.get(task_id)
        if task is None:
            return None
        if path in task.workspace.overlay:
            return task.workspace.overlay[path]
        if task.workspace.path is None:
            return self._fetched.get(task_id, {}).get(path)
        root = Path(task.workspace.path).resolve()
        try:
            file = (root / path).resolve()
            return file.read_text(encoding="utf-8") if file.is_relative_to(root) else None
        except (OSError, ValueError, RuntimeError):
            return None

    def _read_spans(self, task_id: str, path: str) -> tuple[Span, ...] | None:
        text = self.text(task_id, path)
        return None if text is None else spans(text)

"""What was worked out once, kept by key in a JSON-lines file, and the threads that work it out."""

from __future__ import annotations

import hashlib
import json
import os
import queue
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from gumshoe.collect.control import Control
from gumshoe.collect.store import repair_tail
from gumshoe.errors import DatasetError, GumshoeError

__all__ = ["Memo", "digest", "work_off"]

Job = TypeVar("Job")
TICK_S = 0.25


class Memo:
    """A mapping of keys to facts that outlives the process. What is kept is on disk when `keep` returns.

    Args:
        path: the file; read if it is there (a torn last line is cut off), appended to.

    Raises:
        DatasetError: the file holds a line that is none of ours.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._guard = threading.Lock()
        self._known = _read(path)

    def get(self, key: str) -> Mapping[str, Any] | None:
        """The facts of a key; None where it was never kept."""
        with self._guard:
            return self._known.get(key)

    def keep(self, key: str, facts: Mapping[str, Any]) -> None:
        """Puts the facts of a key on disk."""
        line = json.dumps({"key": key, **facts})
        with self._guard:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a", encoding="utf-8") as file:
                file.write(f"{line}\n")
                file.flush()
                os.fsync(file.fileno())
            self._known[key] = facts


def digest(*facts: Any) -> str:
    """A key for facts that JSON can hold."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:24]


def work_off(
    jobs: Iterable[Job],
    work: Callable[[Job], None],
    *,
    workers: int,
    control: Control,
    on_tick: Callable[[], None] = lambda: None,
) -> None:
    """Does the jobs in threads, until none is left or the run stops.

    Raises:
        GumshoeError: the first that a job ended with; no further job is begun then.
    """
    todo: queue.SimpleQueue[Job] = queue.SimpleQueue()
    count = 0
    for count, job in enumerate(jobs, start=1):  # noqa: B007 - how many there are is what is wanted
        todo.put(job)
    errors: list[BaseException] = []

    def serve() -> None:
        while not control.finishing and not errors:
            try:
                work(todo.get_nowait())
            except queue.Empty:
                return
            except BaseException as error:
                # Handed to the thread that waits, which raises it.
                errors.append(error)

    threads = [threading.Thread(target=serve, daemon=True) for _ in range(min(workers, count))]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            thread.join(TICK_S)
            on_tick()
    if errors:
        raise next((error for error in errors if not isinstance(error, GumshoeError)), errors[0])


def _read(path: Path) -> dict[str, Mapping[str, Any]]:
    known: dict[str, Mapping[str, Any]] = {}
    repair_tail(path)
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    for number, line in enumerate(lines, start=1):
        try:
            row: Mapping[str, Any] = json.loads(line)
            known[str(row["key"])] = {name: value for name, value in row.items() if name != "key"}
        except (ValueError, KeyError, TypeError, AttributeError):
            raise DatasetError(f"{path} line {number} cannot be read: remove the file, it is made again") from None
    return known

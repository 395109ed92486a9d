"""Jobs in threads."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from gumshoe.collect.run.control import Control
from gumshoe.errors import GumshoeError

__all__ = ["TICK_S", "run_parallel", "run_threads"]

Job = TypeVar("Job")
TICK_S = 0.25


def run_parallel(
    jobs: Iterable[Job],
    work: Callable[[Job], None],
    *,
    workers: int,
    control: Control,
    on_tick: Callable[[], None] = lambda: None,
) -> None:
    """Does the jobs in threads, until none is left or the run stops.

    Raises:
        GumshoeError: the first error that a job ended with; no further job is begun after it.
    """
    todo: queue.SimpleQueue[Job] = queue.SimpleQueue()
    count = 0
    for count, job in enumerate(jobs, start=1):  # noqa: B007 - only the count is wanted
        todo.put(job)
    errors: list[BaseException] = []

    def serve() -> None:
        while not control.finishing and not errors:
            try:
                work(todo.get_nowait())
            except queue.Empty:
                return
            except BaseException as error:
                # Handed to the waiting thread, which raises it.
                errors.append(error)

    run_threads([threading.Thread(target=serve, daemon=True) for _ in range(min(workers, count))], on_tick)
    if errors:
        raise next((error for error in errors if not isinstance(error, GumshoeError)), errors[0])


def run_threads(threads: Sequence[threading.Thread], on_tick: Callable[[], None]) -> None:
    """Starts threads and waits for all of them; `on_tick` is called about four times a second meanwhile."""
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            thread.join(TICK_S)
            on_tick()

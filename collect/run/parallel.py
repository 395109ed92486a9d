"""Jobs in threads."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable
from typing import TypeVar

from gumshoe.collect.run.control import Control
from gumshoe.errors import GumshoeError

__all__ = ["run_parallel"]

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

    threads = [threading.Thread(target=serve, daemon=True) for _ in range(min(workers, count))]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            thread.join(TICK_S)
            on_tick()
    if errors:
        raise next((error for error in errors if not isinstance(error, GumshoeError)), errors[0])

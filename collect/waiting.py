"""Waiting for a model's answer without being held by it: a run that is stopped at once does not wait for a server."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from gumshoe.collect.control import Control, Interrupted

__all__ = ["unless_aborted"]

TICK_S = 0.25
T = TypeVar("T")


def unless_aborted(control: Control, call: Callable[[], T]) -> T:
    """What `call` returns or raises, from a thread of its own.

    Raises:
        Interrupted: the run is aborted meanwhile. The thread is left to itself: it ends with its server's answer, or
            with the process.
    """
    waiter = _Waiter(call)
    while True:
        try:
            return waiter.result(TICK_S)
        except queue.Empty:
            if control.aborting:
                raise Interrupted from None


class _Waiter(Generic[T]):
    def __init__(self, call: Callable[[], T]) -> None:
        self._call = call
        self._results: queue.SimpleQueue[tuple[T, None] | tuple[None, BaseException]] = queue.SimpleQueue()
        threading.Thread(target=self._run, name="gumshoe-policy", daemon=True).start()

    def result(self, timeout_s: float) -> T:
        """What came of the call. Raises queue.Empty while there is nothing."""
        value, error = self._results.get(timeout=timeout_s)
        if error is not None:
            raise error
        return value  # pyright: ignore[reportReturnType] - without an error it is a value

    def _run(self) -> None:
        try:
            self._results.put((self._call(), None))
        except BaseException as error:
            # Handed to the thread that waits, which raises it.
            self._results.put((None, error))

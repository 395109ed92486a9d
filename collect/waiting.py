"""Waiting without being held: a run that is stopped at once waits neither for a server nor for a program."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from gumshoe.collect.control import Control, Interrupted

__all__ = ["unless_aborted"]

TICK_S = 0.25
PATIENCE_S = 10.0
T = TypeVar("T")


def unless_aborted(control: Control, call: Callable[[], T], end: Callable[[], None] | None = None) -> T:
    """What `call` returns or raises, from a thread of its own.

    Args:
        control: says when to wait no longer.
        call: what is waited for.
        end: makes `call` come to its end, if it is at something that can be ended just then; called until it has ended,
            for some seconds. Without it, and after that, the thread is left to itself.

    Raises:
        Interrupted: the run is aborted meanwhile.
    """
    waiter = _Waiter(call)
    while not waiter.over(TICK_S):
        if control.aborting:
            _end(waiter, end)
            raise Interrupted
    return waiter.result()


def _end(waiter: _Waiter[Any], end: Callable[[], None] | None) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while end is not None and time.monotonic() < deadline and not waiter.over(0):
        end()
        waiter.over(TICK_S)


class _Waiter(Generic[T]):
    def __init__(self, call: Callable[[], T]) -> None:
        self._call = call
        self._over = threading.Event()
        self._results: list[T] = []
        self._error: BaseException | None = None
        threading.Thread(target=self._run, name="gumshoe-call", daemon=True).start()

    def over(self, timeout_s: float) -> bool:
        """Whether the call has ended; waits so long for it."""
        return self._over.wait(timeout_s)

    def result(self) -> T:
        """What came of the call, once it is over."""
        if self._error is not None:
            raise self._error
        return self._results[0]

    def _run(self) -> None:
        try:
            self._results.append(self._call())
        except BaseException as error:
            # Kept for the thread that waits, which raises it.
            self._error = error
        finally:
            self._over.set()

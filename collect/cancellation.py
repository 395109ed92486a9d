"""Waiting that can be cancelled: a run that is stopped at once waits neither for a server nor for a program."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from typing import Any, TypeVar

from gumshoe.collect.control import Control, Interrupted

__all__ = ["run_cancellable"]

POLL_S = 0.25
CANCEL_TIMEOUT_S = 10.0
T = TypeVar("T")


def run_cancellable(control: Control, call: Callable[[], T], cancel: Callable[[], None] | None = None) -> T:
    """What `call` returns or raises when run in a thread of its own.

    Args:
        control: says when to stop waiting.
        call: what is waited for.
        cancel: ends `call`, if it is doing something that can be ended at that moment; called repeatedly until `call`
            has ended, for some seconds. Without it, and after that, the thread is left to itself.

    Raises:
        Interrupted: the run is aborted in the meantime.
    """
    future: Future[T] = Future()
    threading.Thread(target=_run, args=(future, call), name="gumshoe-call", daemon=True).start()
    while not _ended(future, POLL_S):
        if control.aborting:
            deadline = time.monotonic() + CANCEL_TIMEOUT_S
            while cancel is not None and time.monotonic() < deadline and not _ended(future, 0):
                cancel()
                _ended(future, POLL_S)
            raise Interrupted
    return future.result()


def _run(future: Future[T], call: Callable[[], T]) -> None:
    try:
        future.set_result(call())
    except BaseException as error:
        # Kept for the waiting thread, which raises it.
        future.set_exception(error)


def _ended(future: Future[Any], timeout_s: float) -> bool:
    return bool(wait_for([future], timeout_s).done)

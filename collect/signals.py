"""Ctrl-C during a run: once finishes the episodes in progress, twice stops at once."""

from __future__ import annotations

import signal
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

from gumshoe.collect.control import Control

__all__ = ["stop_on_signals"]


@contextmanager
def stop_on_signals(control: Control, *, attended: bool = False) -> Generator[None]:
    """Ctrl-C once finishes, twice stops; SIGTERM stops at once. The earlier handlers are restored at the end.

    Args:
        control: what is told to stop.
        attended: a person is asked at each turn, so there is nothing to finish: Ctrl-C stops at once.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        del frame
        if attended or control.finishing or number == signal.SIGTERM:
            control.abort()
        else:
            control.finish()

    try:
        earlier = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:
        # Not the main thread: the caller handles signals.
        earlier = {}
    try:
        yield
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)

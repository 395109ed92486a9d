"""Sandboxes that are prepared ahead: the repository, its environment and its setup are in them.

A task that comes as an image, or has setup commands, can change all of its sandbox. So each sandbox is used once, the
next one is prepared in the background while an episode runs, and nobody waits until the last one is removed. Preparing
is worth it only for tasks that are played again and again, so it begins with the second episode of a task.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from gumshoe.env.sandboxes.client import WardenSandbox
from gumshoe.env.sandboxes.link import BorrowedLink, WardenConnection
from gumshoe.errors import GumshoeError

__all__ = ["PreparedSandboxes", "closed_later"]

AT_ONCE = 2


def closed_later(link: WardenConnection, closers: ThreadPoolExecutor) -> BorrowedLink:
    """A connection that is closed in the background; the interpreter does not exit before that."""

    def give_back() -> None:
        try:
            closers.submit(link.close)
        except RuntimeError:  # The thread pool is closed, or the interpreter is shutting down.
            link.close()

    return BorrowedLink(link, give_back)


class PreparedSandboxes:
    """Keeps the next sandbox of each task that is played repeatedly.

    Attributes:
        closers: the threads for `closed_later`.

    Args:
        limit: how many wait at most; the one that was ordered first makes room.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._taken: Counter[str] = Counter()
        self._coming: OrderedDict[str, Future[WardenSandbox]] = OrderedDict()
        self._workers = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="gumshoe-prepared")
        self.closers = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="gumshoe-closing")
        self._closed = False

    def take(self, key: str, make: Callable[[], WardenSandbox]) -> WardenSandbox:
        """A sandbox for one use: the one that was prepared, else a new one. Raises what `make` raises.

        Args:
            key: what decides what is in the sandbox.
            make: starts one.
        """
        with self._lock:
            self._taken[key] += 1
            coming = self._coming.pop(key, None)
        sandbox = (coming and _usable(coming)) or make()
        self._order(key, make)
        return sandbox

    def fill(self) -> None:
        """Waits until those that were ordered are there, or have failed."""
        with self._lock:
            coming = list(self._coming.values())
        for each in coming:
            each.exception()

    @property
    def waiting(self) -> int:
        """How many wait to be taken, including those that are being prepared."""
        return len(self._coming)

    def close(self) -> None:
        """Closes those that wait. Idempotent."""
        with self._lock:
            self._closed = True
            coming, self._coming = self._coming, OrderedDict()
        self._workers.shutdown(wait=True, cancel_futures=True)
        for each in coming.values():
            _discard(each)
        self.closers.shutdown(wait=True)

    def _order(self, key: str, make: Callable[[], WardenSandbox]) -> None:
        """Has the next one prepared where the task was played before."""
        surplus: list[Future[WardenSandbox]] = []
        with self._lock:
            if self._closed or self._taken[key] < 2 or key in self._coming:
                return
            try:
                self._coming[key] = self._workers.submit(make)
            except RuntimeError:  # The interpreter ends.
                return
            while len(self._coming) > self._limit:
                surplus.append(self._coming.popitem(last=False)[1])
        for each in surplus:
            each.add_done_callback(_discard)


def _usable(coming: Future[WardenSandbox]) -> WardenSandbox | None:
    """The sandbox, once it is there; None where it could not be made, or is broken by now."""
    try:
        sandbox = coming.result()
    except (GumshoeError, OSError):
        return None
    try:
        sandbox.real_path(".")
    except (GumshoeError, OSError):
        sandbox.close()
        return None
    return sandbox


def _discard(coming: Future[WardenSandbox]) -> None:
    if not coming.cancelled() and coming.exception() is None:
        coming.result().close()

"""Sandboxes that are started ahead: a pool of blank ones that are reused, and prepared ones that are used once.

`SandboxPool` is for tasks that come as a folder and need no setup: nothing but the scratch folders can be written in
their sandboxes. A sandbox comes back to the pool when it is closed. In the background its programs are killed, its
folders emptied, and its whole state compared with the state at its start (see `gumshoe.env.inside.warden.state`). If
anything differs, or anything fails, it is thrown away and a fresh one is started in its place.

`PreparedSandboxes` is for tasks that come as an image or have setup commands, which can change all of their sandbox.
Each one is used once, the next one is prepared in the background while an episode runs, and nobody waits until the last
one is removed. Preparing is worth it only for tasks that are played again and again, so it begins with the second
episode of a task.

The local sandbox is never started ahead.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from gumshoe.env.sandboxes.client import WardenSandbox
from gumshoe.env.sandboxes.link import RPC_GRACE_S, BorrowedLink, Link, WardenConnection
from gumshoe.errors import GumshoeError, SandboxClosed, SandboxError

__all__ = ["Lease", "PreparedSandboxes", "SandboxPool", "WarmLink", "closed_later"]

DEVICES = "/dev"
SETTLE_S = 1.0
CLEAN_S = 10.0


class WarmLink:
    """A link to a blank sandbox, and what it looked like at its start.

    Once it has failed, which `failed` says, it is not used again. The test server is started in it for the next use if
    one has been asked for before: `server` says how.
    """

    def __init__(self, link: Link, server: Mapping[str, Any] | None = None) -> None:
        self.link = link
        self.failed = False
        link.server = server
        self._scratch = list(link.scratch)
        self._blank = self._state()
        self._start_ahead()

    def reset(self) -> bool:
        """Clears the sandbox; False where it is not as it was at the start. Raises SandboxError and OSError."""
        self.link.ask("clear", RPC_GRACE_S, folders=self._scratch)
        self.link.configure()
        blank = self._is_blank()
        if blank:
            self._start_ahead()
        return blank

    def _start_ahead(self) -> None:
        if self.link.server is not None:
            WardenSandbox(self.link).start_test_server(self.link.server)

    def _is_blank(self) -> bool:
        """Whether it is as it was at the start. A killed process is listed until it is reaped, which takes a moment."""
        deadline = time.monotonic() + SETTLE_S
        while (state := self._state()) != self._blank:
            if state["processes"] == self._blank["processes"] or time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        return True

    def _state(self) -> Mapping[str, Any]:
        try:
            return self.link.ask("inspect", RPC_GRACE_S, folders=[*self._scratch, DEVICES])
        except OSError as error:
            raise SandboxError(f"the state of the sandbox cannot be read: {error.strerror}") from None


class Lease(BorrowedLink):
    """One episode's use of a warm sandbox.

    Attributes:
        warm: the sandbox that is used.
    """

    def __init__(self, warm: WarmLink, give_back: Callable[[WarmLink], None]) -> None:
        super().__init__(warm.link, lambda: give_back(warm))
        self.warm = warm

    def ask(self, op: str, timeout: float | None = RPC_GRACE_S, **arguments: Any) -> Any:
        """As `Link.ask`."""
        try:
            return super().ask(op, timeout, **arguments)
        except SandboxError:
            self.warm.failed = True
            raise


class SandboxPool:
    """Keeps `size` sandboxes of one kind alive, those in use among them.

    The first use starts the others in the background. More than `size` can be in use at a time; the surplus is
    closed when it comes back. Once programs ask for a test server, it is started in those that wait, and one more is
    kept, so that it has time to start.

    Args:
        start: starts a blank sandbox.
        size: how many are kept alive.
    """

    def __init__(self, start: Callable[[], Link], size: int) -> None:
        self._start = start
        self._size = size
        self._lock = threading.Lock()
        self._cleaned = threading.Condition(self._lock)
        self._ready: list[WarmLink] = []
        self._used: list[WarmLink] = []
        self._server: Mapping[str, Any] | None = None
        self._leased = 0
        self._starting = 0
        self._coming: set[Future[None]] = set()
        self._starter = ThreadPoolExecutor(1, thread_name_prefix="gumshoe-pool")
        self._cleaner = ThreadPoolExecutor(max(1, size), thread_name_prefix="gumshoe-pool")
        self._closed = False

    def lease(self) -> Lease:
        """A blank sandbox: a ready one, one that is being cleaned, or one that is started now. Raises SandboxError."""
        with self._lock:
            self._cleaned.wait_for(lambda: self._ready or self._closed or not self._used, CLEAN_S)
            if self._closed:
                raise SandboxClosed("the pool of sandboxes has been closed")
            # The one that has waited longest: its test server has had the most time to get ready.
            warm = self._ready.pop(0) if self._ready else None
            self._leased += 1
            self._order()
        try:
            return Lease(warm or WarmLink(self._start(), self._server), self._take_back)
        except BaseException:
            with self._lock:
                self._leased -= 1
            raise

    def fill(self) -> None:
        """Waits until those that came back are clean and as many are alive as the pool keeps.

        Raises the SandboxError of one that cannot be started.
        """
        with self._lock:
            self._cleaned.wait_for(lambda: not self._used)
            self._order()
            coming = list(self._coming)
        for future in coming:
            future.result()

    def close(self) -> None:
        """Closes the sandboxes that are ready; those that are leased are closed when they come back. Idempotent."""
        with self._lock:
            self._closed = True
            self._cleaned.notify_all()
        self._starter.shutdown(wait=True, cancel_futures=True)
        self._cleaner.shutdown(wait=True)
        with self._lock:
            ready, self._ready = self._ready, []
        for warm in ready:
            warm.link.close()

    @property
    def ready(self) -> int:
        """How many sandboxes wait to be leased."""
        return len(self._ready)

    def __enter__(self) -> SandboxPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _order(self) -> None:
        """Has the missing ones started in the background. Called with the lock held."""
        for _ in range(self._wanted() - self._alive()):
            try:
                future = self._starter.submit(self._make_ready)
            except RuntimeError:  # The interpreter is shutting down.
                return
            self._starting += 1
            self._coming.add(future)
            future.add_done_callback(self._coming.discard)

    def _alive(self) -> int:
        return len(self._ready) + self._leased + self._starting

    def _wanted(self) -> int:
        return self._size + (self._server is not None)

    def _make_ready(self) -> None:
        try:
            warm = WarmLink(self._start(), self._server)
        except BaseException:
            with self._lock:
                self._starting -= 1
            raise
        with self._lock:
            self._starting -= 1
            wanted = not self._closed
            if wanted:
                self._ready.append(warm)
        if not wanted:
            warm.link.close()

    def _take_back(self, warm: WarmLink) -> None:
        """Has a sandbox cleaned in the background; closes it if the pool is closed."""
        with self._lock:
            self._server = warm.link.server or self._server
            try:
                self._cleaner.submit(self._clean, warm)
            except RuntimeError:  # The thread pool is closed, or the interpreter is shutting down.
                self._leased -= 1
            else:
                self._used.append(warm)
                return
        warm.link.close()

    def _clean(self, warm: WarmLink) -> None:
        as_before = False
        try:
            as_before = not self._closed and not warm.failed and warm.reset()
        except (SandboxError, OSError):
            pass  # A sandbox that cannot even be cleared is the very one to throw away.
        finally:
            with self._lock:
                self._used.remove(warm)
                self._leased -= 1
                wanted = as_before and not self._closed and self._alive() < self._wanted()
                if wanted:
                    self._ready.append(warm)
                elif not self._closed:
                    self._order()
                self._cleaned.notify_all()
            if not wanted:
                warm.link.close()


AT_ONCE = 2
"""How many sandboxes are prepared, and how many are closed, at the same time."""


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

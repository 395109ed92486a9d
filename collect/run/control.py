"""What the workers of a run share: whether to stop, what was spent, what each is doing, and their threads."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar

from gumshoe.collect.config import BudgetConfig
from gumshoe.errors import GumshoeError
from gumshoe.records import Usage

CANCEL_TIMEOUT_S = 10.0
TICK_S = 0.25
"""How often what waits looks around."""
T = TypeVar("T")
Job = TypeVar("Job")


class Interrupted(Exception):
    """The run stops before the episode is over."""


class Control:
    """Thread-safe switches and counters of one run."""

    def __init__(self, budget: BudgetConfig | None = None) -> None:
        self._budget = budget or BudgetConfig()
        self._started = time.monotonic()
        self._guard = threading.Lock()
        self._spent = Usage()
        self._finish = threading.Event()
        self._abort = threading.Event()
        self._steps_before = 0
        self.steps = 0
        self.failures = 0
        self.doing: dict[str, str] = {}
        self.on_step: Callable[[str], None] = lambda doing: None
        """Called with what a worker does, in its thread, whenever a turn begins."""

    @property
    def spent(self) -> Usage:
        """What all episodes have used so far."""
        with self._guard:
            return self._spent

    @property
    def elapsed_s(self) -> float:
        """Seconds since the run began in this process."""
        return time.monotonic() - self._started

    @property
    def finishing(self) -> bool:
        """No further episode is begun."""
        return self._finish.is_set() or self.exhausted is not None

    @property
    def aborting(self) -> bool:
        """Episodes at hand are left where they are."""
        return self._abort.is_set()

    @property
    def exhausted(self) -> str | None:
        """Which part of the budget is used up; None while all of it lasts."""
        spent = self.spent
        if self._budget.steps is not None and self._steps_before + self.steps >= self._budget.steps:
            return "steps"
        if self._budget.tokens is not None and spent.tokens >= self._budget.tokens:
            return "tokens"
        if self._budget.cost_usd is not None and (spent.cost_usd or 0.0) >= self._budget.cost_usd:
            return "cost_usd"
        if self._budget.wall_s is not None and self.elapsed_s >= self._budget.wall_s:
            return "wall_s"
        return None

    def count_earlier(self, usage: Usage, steps: int) -> None:
        """Counts an episode finished by an earlier process toward the budget, but not toward this one's speed."""
        with self._guard:
            self._spent = self._spent + usage
            self._steps_before += steps

    def count_failure(self) -> None:
        """Counts one attempt that failed."""
        with self._guard:
            self.failures += 1

    def count_completion(self, usage: Usage) -> None:
        """Counts what one completion has used."""
        with self._guard:
            self._spent = self._spent + usage

    def begin_turn(self, worker: str, doing: str) -> None:
        """Counts a turn that begins, and notes what the worker does in it."""
        with self._guard:
            self.steps += 1
            self.doing[worker] = doing
        self.on_step(doing)

    def finish(self) -> None:
        """Asks that no further episode be begun."""
        self._finish.set()

    def abort(self) -> None:
        """Asks to stop now."""
        self._finish.set()
        self._abort.set()

    def check(self) -> None:
        """Raises Interrupted if the episode at hand must not continue."""
        if self.aborting or self.exhausted is not None:
            raise Interrupted


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
    threading.Thread(target=_settle, args=(future, call), name="gumshoe-call", daemon=True).start()
    while not _ended(future, TICK_S):
        if control.aborting:
            deadline = time.monotonic() + CANCEL_TIMEOUT_S
            while cancel is not None and time.monotonic() < deadline and not _ended(future, 0):
                cancel()
                _ended(future, TICK_S)
            raise Interrupted
    return future.result()


def _settle(future: Future[T], call: Callable[[], T]) -> None:
    try:
        future.set_result(call())
    except BaseException as error:
        # Kept for the waiting thread, which raises it.
        future.set_exception(error)


def _ended(future: Future[Any], timeout_s: float) -> bool:
    return bool(wait_for([future], timeout_s).done)


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
        BaseException: the first error that a job ended with; no further job is begun after it. An error that is no
            GumshoeError comes before those that are.
    """
    todo = list(jobs)
    left = iter(todo)  # Taking the next one of a list is a single step: no two threads get the same job.
    errors: list[BaseException] = []

    def serve() -> None:
        for job in left:
            if control.finishing or errors:
                return
            try:
                work(job)
            except BaseException as error:
                # Handed to the waiting thread, which raises it.
                errors.append(error)

    run_threads([threading.Thread(target=serve, daemon=True) for _ in range(min(workers, len(todo)))], on_tick)
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

"""Many episodes at once, in threads: the work happens in sandboxes and on servers, not in this process.

Where the sandboxes are is the places' matter: in this process, or on the nodes of a cluster.
"""

from __future__ import annotations

import logging
import queue
import random
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from gumshoe.collect.agent import make_agent
from gumshoe.collect.config import CollectConfig, TasksConfig
from gumshoe.collect.control import Control, Interrupted
from gumshoe.collect.journal import Diverged
from gumshoe.collect.places import Here, MakePlace, Place
from gumshoe.collect.policies import close_policy, make_policy
from gumshoe.collect.rollout import Episode, Rollout
from gumshoe.collect.store import RunFolder
from gumshoe.env.tasks import load_tasks
from gumshoe.errors import ConfigError, GumshoeError, TaskError
from gumshoe.protocols import Policy
from gumshoe.records import Oracle, Task, Trajectory

__all__ = ["RunResult", "Runner", "plan_episodes", "wanted_tasks"]

log = logging.getLogger(__name__)
TICK_S = 0.25


@dataclass(frozen=True)
class RunResult:
    """How a run ended: episodes finished in all, by this process, and still open; why it stopped early, if it did."""

    planned: int
    finished: int
    now: int
    gave_up: int
    stopped: str | None


def plan_episodes(config: CollectConfig, run: str) -> list[Episode]:
    """The episodes of a run, in their order. Raises TaskError when the filters leave no task."""
    tasks = _chosen(config.tasks, config.seed)
    return [
        Episode(task, oracle, sample, _seed(config.seed, task.id, sample), run)
        for sample in range(config.tasks.samples)
        for task, oracle in tasks
    ]


class Runner:
    """Plays the episodes of a config that the run folder does not hold yet.

    An episode that the infrastructure failed is tried again at the end, up to `config.attempts` times in all. When
    nothing works any more (as many failures in a row as there are workers, at least three, and no success) the run
    stops with the last failure.

    Args:
        config: what is run.
        folder: where it is kept.
        control: stops it, counts for it.
        on_done: called with each finished trajectory, one at a time.
        wrap: puts something around the policy of each episode.
        make_place: makes each worker's place; default this process.
    """

    def __init__(
        self,
        config: CollectConfig,
        folder: RunFolder,
        control: Control,
        on_done: Callable[[Trajectory], None] = lambda _: None,
        wrap: Callable[[Policy], Policy] = lambda policy: policy,
        make_place: MakePlace = Here,
    ) -> None:
        self._config = config
        self._folder = folder
        self._control = control
        self._on_done = on_done
        self._wrap = wrap
        self._make_place = make_place
        self._agent = make_agent(config.agent)
        self._queue: queue.SimpleQueue[Episode] = queue.SimpleQueue()
        self._guard = threading.Lock()
        self._open = 0
        self._done = 0
        self._failed_in_a_row = 0
        self._patience = max(3, config.workers)
        self._fatal: BaseException | None = None

    def run(self, episodes: Sequence[Episode], on_tick: Callable[[], None] = lambda: None) -> RunResult:
        """Plays what is open and returns when it is done or was stopped.

        Args:
            episodes: all episodes of the run; finished ones are skipped.
            on_tick: called about four times a second from this thread.

        Raises:
            GumshoeError: the config is wrong, or nothing works any more.
        """
        todo = [episode for episode in episodes if self._wanted(episode)]
        self._open = len(todo)
        for episode in todo:
            self._queue.put(episode)
        workers = [
            threading.Thread(target=self._work, args=(f"worker {number}",), daemon=True)
            for number in range(1, min(self._config.workers, len(todo)) + 1)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            while worker.is_alive():
                worker.join(TICK_S)
                on_tick()
        if self._fatal is not None:
            raise self._fatal
        return self._result(episodes)

    def _result(self, episodes: Iterable[Episode]) -> RunResult:
        ids = [episode.id for episode in episodes]
        finished = sum(name in self._folder.finished for name in ids)
        gave_up = sum(
            name not in self._folder.finished and self._folder.failed_attempts(name) >= self._config.attempts
            for name in ids
        )
        stopped = None
        if finished + gave_up < len(ids):
            exhausted = self._control.exhausted
            stopped = f"the budget of {exhausted} is used up" if exhausted else "interrupted"
        return RunResult(len(ids), finished, self._done, gave_up, stopped)

    def _wanted(self, episode: Episode) -> bool:
        if episode.id in self._folder.finished:
            return False
        return self._folder.failed_attempts(episode.id) < self._config.attempts

    def _work(self, worker: str) -> None:
        try:
            place = self._make_place()
            try:
                self._work_at(place, worker)
            finally:
                place.close()
        except BaseException as error:
            # Handed to the thread that called run(), which raises it.
            self._fatal = self._fatal or error
            self._control.abort()

    def _work_at(self, place: Place, worker: str) -> None:
        while not self._control.finishing and self._fatal is None:
            episode = self._take(place)
            if episode is None:
                return
            self._play(episode, worker, place)
            self._control.doing.pop(worker, None)

    def _take(self, place: Place) -> Episode | None:
        """The next episode, once the place can take it; None once none is left or can come back."""
        while not self._control.finishing:
            with self._guard:
                if self._open == 0:
                    return None
            if not place.ready():
                continue
            try:
                return self._queue.get(timeout=TICK_S)
            except queue.Empty:
                continue
        return None

    def _play(self, episode: Episode, worker: str, place: Place) -> None:
        """Plays one episode to its end, to a failure, or until the run is stopped."""
        try:
            trajectory = self._rollout(episode, worker, place)
        except Interrupted:
            log.info("%s left where it is", episode.id)
        except ConfigError:
            raise
        except GumshoeError as error:
            self._failed(episode, error)
        else:
            self._finished(trajectory)

    def _rollout(self, episode: Episode, worker: str, place: Place) -> Trajectory:
        """The finished trajectory, on disk. A replay that diverges is set aside and begun anew."""
        while True:
            policy = self._wrap(make_policy(self._config.policy, episode.task, episode.oracle, episode.seed))
            journal = self._folder.journal(episode.id, {"seed": episode.seed, "task": episode.task.hash})
            if journal.replayable:
                log.info("%s replays %d turns of a stopped process", episode.id, journal.replayable)
            rollout = Rollout(
                episode,
                self._agent,
                policy,
                sandbox=self._config.sandbox,
                place=place,
                limits=self._config.limits,
                journal=journal,
                control=self._control,
                worker=worker,
            )
            try:
                trajectory = rollout.run()
            except Diverged as error:
                log.warning("%s diverged: %s; begun anew", episode.id, error)
                self._folder.add_failure(episode.id, "diverged", str(error))
                journal.set_aside()
                continue
            finally:
                journal.close()
                close_policy(policy)
            self._folder.add(trajectory)
            journal.discard()
            return trajectory

    def _finished(self, trajectory: Trajectory) -> None:
        log.info("%s %s after %d steps%s", trajectory.id, trajectory.stop, len(trajectory.steps), _outcome(trajectory))
        with self._guard:
            self._open -= 1
            self._done += 1
            self._failed_in_a_row = 0
            self._on_done(trajectory)

    def _failed(self, episode: Episode, error: GumshoeError) -> None:
        log.warning("%s failed: %s: %s", episode.id, type(error).__name__, error)
        self._folder.add_failure(episode.id, type(error).__name__, str(error))
        self._control.fail()
        with self._guard:
            self._failed_in_a_row += 1
            hopeless = self._failed_in_a_row >= self._patience and self._done == 0
            if self._wanted(episode) and not hopeless:
                self._queue.put(episode)
            else:
                self._open -= 1
        if hopeless:
            raise error


def _outcome(trajectory: Trajectory) -> str:
    return {True: ", resolved", False: ", not resolved", None: ""}[trajectory.resolved]


def wanted_tasks(config: TasksConfig, on_error: Callable[[TaskError], None]) -> list[tuple[Task, Oracle]]:
    """The tasks with the wanted ids and tags, in the order of their source.

    Args:
        config: which tasks; its `shuffle` and `limit` are left to the caller.
        on_error: told of each entry of the source that is broken, which is left out.

    Raises:
        TaskError: the source cannot be read, or no task is left.
    """
    options: dict[str, Any] = dict(config.options)
    tasks = load_tasks(config.source, ids=config.ids or None, tags=config.tags, on_error=on_error, **options)
    if not tasks:
        raise TaskError(f"no task of {config.source} is left after tasks.ids and tasks.tags: loosen them")
    return tasks


def _chosen(config: TasksConfig, seed: int) -> list[tuple[Task, Oracle]]:
    tasks = wanted_tasks(config, _pass_over)
    if config.shuffle:
        random.Random(seed).shuffle(tasks)
    return tasks if config.limit is None else tasks[: config.limit]


def _pass_over(error: TaskError) -> None:
    log.warning("passed over: %s", error)


def _seed(run_seed: int, task_id: str, sample: int) -> int:
    return random.Random(f"{run_seed}/{task_id}/{sample}").getrandbits(48)

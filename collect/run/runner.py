"""Many episodes at once, in threads: the work happens in sandboxes and on servers, not in this process.

    plan_episodes ──> Runner.run: a queue of trees
                           │
                each worker, in a thread: _run_worker ──> _play_tree ──> _play_episode ──> run folder
                           │                                  └ a tree of which an attempt failed
                           └ its EnvironmentFactory             goes back into the queue

A tree is an episode with all that branches from it: in most runs, nothing. Only the environment, that is, the sandbox
and the tools in it, may be on another machine (`gumshoe.collect.run.cluster`): the state machine of an episode, its
policy, its journal and its budget stay here.
"""

from __future__ import annotations

import logging
import os
import queue
import random
import threading
import traceback
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import gymnasium

from gumshoe.collect.config import CollectConfig, RayConfig
from gumshoe.collect.data.journal import Diverged
from gumshoe.collect.data.store import RunFolder
from gumshoe.collect.episode.episode import AnyEnv, Episode
from gumshoe.collect.episode.spec import EpisodeSpec, chosen_tasks, make_agent
from gumshoe.collect.policies import make_policy
from gumshoe.collect.run.branching import OpenTree, is_whole, open_episodes
from gumshoe.collect.run.control import TICK_S, Control, Interrupted, run_threads
from gumshoe.collect.run.play import cancellable, play
from gumshoe.env.debug_env import DebugEnv
from gumshoe.errors import ConfigError, GumshoeError
from gumshoe.protocols import Policy, close_policy
from gumshoe.records import Task, Trajectory

if TYPE_CHECKING:
    from gumshoe.collect.run.cluster import RayFactory

log = logging.getLogger(__name__)

CALLS_PER_CORE = 2
"""How many environments work at once: with more, the programs in their sandboxes only cost each other time."""


class TakesTurns(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment that waits while as many others are working as the cores can serve."""

    _turns = threading.BoundedSemaphore(CALLS_PER_CORE * (os.cpu_count() or 1))

    def reset(self, **options: Any) -> Any:
        """As the environment's."""
        with self._turns:
            return self.env.reset(**options)

    def step(self, action: Any) -> Any:
        """As the environment's."""
        with self._turns:
            return self.env.step(action)


class InProcess:
    """Makes the environments of one worker's episodes, one after the other, in the process that runs the command."""

    def ready(self) -> bool:
        """Whether an episode can begin: always."""
        return True

    def environment(self, task: Task, **options: Any) -> AnyEnv:
        """The environment of one episode, with the arguments of `DebugEnv`; nothing starts before its `reset`."""
        return TakesTurns(DebugEnv(task, **options))

    def close(self) -> None:
        """Nothing is held."""


EnvironmentFactory: TypeAlias = "InProcess | RayFactory"
"""Makes the environments of one worker's episodes. `ready` may wait a moment before it says whether an episode can
begin, and raises GumshoeError if none ever can; `close` is idempotent.
"""
MakeFactory: TypeAlias = Callable[[], EnvironmentFactory]


@contextmanager
def open_factories(runner: str, ray: RayConfig) -> Generator[MakeFactory]:
    """What makes each worker's factory: `threads` stays in this process, `ray` uses the nodes of a cluster.

    Raises ConfigError if there is none.
    """
    if runner == "threads":
        yield InProcess
        return
    from gumshoe.collect.run.cluster import ray_factories

    with ray_factories(ray) as make_factory:
        yield make_factory


@dataclass(frozen=True)
class RunResult:
    """How a run ended. An episode that branches counts as one, and is finished when its whole tree is.

    `finished` and `gave_up` count what was so now or earlier, `branches` the additional episodes of trees. `stopped` is
    why the run ended early; None if it did not.
    """

    planned: int
    finished: int
    gave_up: int
    branches: int
    stopped: str | None


def plan_episodes(config: CollectConfig, run: str) -> list[EpisodeSpec]:
    """The episodes of a run, in their order. Raises TaskError when the filters leave no task."""
    tasks = chosen_tasks(config.tasks, config.seed)
    return [
        EpisodeSpec(
            task=task,
            oracle=oracle,
            sample=sample,
            seed=random.Random(f"{config.seed}/{task.id}/{sample}").getrandbits(48),
            run=run,
            eval_on_submit=config.eval_on_submit,
            score_report=config.branch is not None,
        )
        for sample in range(config.tasks.samples)
        for task, oracle in tasks
    ]


class Runner:
    """Plays the episodes of a config that the run folder does not hold yet.

    An episode that failed, for whatever reason, is tried again at the end, up to `config.attempts` times in all; the
    others continue. With `config.fail_on_error`, the run stops after that many failed attempts. When the infrastructure
    fails every attempt (as many in a row as there are workers, at least three, and no success), the run stops with the
    last failure.

    Args:
        config: what is run.
        folder: where it is kept.
        control: stops it, counts for it.
        on_done: called with each finished trajectory, and whether its whole tree is finished, one at a time.
        wrap: puts something around the policy of each episode.
        make_factory: makes each worker's environments; default in this process.
        on_stopped: called with each episode that is left unfinished because the run is stopped, in its thread.
    """

    def __init__(
        self,
        config: CollectConfig,
        folder: RunFolder,
        control: Control,
        *,
        on_done: Callable[[Trajectory, bool], None] = lambda trajectory, is_whole: None,
        wrap: Callable[[Policy, EpisodeSpec], Policy] = lambda policy, spec: policy,
        make_factory: MakeFactory = InProcess,
        on_stopped: Callable[[Episode], None] = lambda episode: None,
    ) -> None:
        self._config = config
        self._folder = folder
        self._control = control
        self._on_done = on_done
        self._on_stopped = on_stopped
        self._wrap = wrap
        self._make_factory = make_factory
        self._agent = make_agent(config.agent)
        self._queue: queue.SimpleQueue[EpisodeSpec] = queue.SimpleQueue()
        self._guard = threading.Lock()
        self._open_trees = 0
        self._finished = 0
        self._failures = 0
        self._failed_in_a_row = 0
        self._max_failures_in_a_row = max(3, config.workers)
        self._fatal: BaseException | None = None

    def run(self, episodes: Sequence[EpisodeSpec], on_tick: Callable[[], None] = lambda: None) -> RunResult:
        """Plays what is open and returns when it is done or was stopped.

        `episodes` are all of the run; `on_tick` is called about four times a second from this thread. Raises
        GumshoeError if the config is wrong, or every attempt fails.
        """
        todo = [root for root in episodes if self._has_open_episodes(root)]
        self._open_trees = len(todo)
        for root in todo:
            self._queue.put(root)
        workers = [
            threading.Thread(target=self._run_worker, args=(f"worker {number}",), daemon=True)
            for number in range(1, min(self._config.workers, len(todo)) + 1)
        ]
        run_threads(workers, on_tick)
        if self._fatal is not None:
            raise self._fatal
        return self._result(episodes)

    def _result(self, trees: Sequence[EpisodeSpec]) -> RunResult:
        open_ones = sum(self._has_open_episodes(root) for root in trees)
        finished = sum(is_whole(root, self._config.branch, self._folder.nodes) for root in trees)
        stopped = None
        if open_ones:
            exhausted = self._control.exhausted
            stopped = f"the budget of {exhausted} is used up" if exhausted else "interrupted"
        return RunResult(
            planned=len(trees),
            finished=finished,
            gave_up=len(trees) - open_ones - finished,
            branches=sum(node.branch is not None for node in self._folder.nodes.values()),
            stopped=stopped,
        )

    def _has_open_episodes(self, root: EpisodeSpec) -> bool:
        return next(self._open_episodes(root), None) is not None

    def _open_episodes(self, root: EpisodeSpec) -> Iterator[EpisodeSpec]:
        """The episodes of a tree that are to be played; those that have failed too often are left out."""
        return open_episodes(root, self._config.branch, self._folder.nodes, self._is_given_up)

    def _is_given_up(self, id: str) -> bool:
        return self._folder.failed_attempts(id) >= self._config.attempts

    def _run_worker(self, worker: str) -> None:
        try:
            with closing(self._make_factory()) as factory:
                while self._fatal is None and (root := self._next_tree(factory)) is not None:
                    self._play_tree(root, worker, factory)
                    self._control.doing.pop(worker, None)
        except BaseException as error:
            # Handed to the thread that called run(), which raises it.
            self._fatal = self._fatal or error
            self._control.abort()

    def _next_tree(self, factory: EnvironmentFactory) -> EpisodeSpec | None:
        """The next episode, once the factory can take it; None once none is left or can come back."""
        while not self._control.finishing:
            with self._guard:
                if self._open_trees == 0:
                    return None
            if not factory.ready():
                continue
            try:
                return self._queue.get(timeout=TICK_S)
            except queue.Empty:
                continue
        return None

    def _play_tree(self, root: EpisodeSpec, worker: str, factory: EnvironmentFactory) -> None:
        """Plays one episode, and all that branches from it, to the end, to a failure, or until the run is stopped."""
        spec = root
        tree = OpenTree(self._config.branch, self._folder.read)
        try:
            for spec in self._open_episodes(root):
                if self._control.finishing:
                    raise Interrupted
                trajectory = self._play_episode(spec, worker, factory, tree)
                self._folder.add(trajectory)
                self._count_finished(trajectory, root)
        except Interrupted:
            log.info("%s left where it is", spec.id)
        except ConfigError:
            raise
        except Exception as error:
            # Even an unforeseen error ends only this episode.
            self._record_failure(root, spec, error)
        else:
            with self._guard:
                self._open_trees -= 1
        finally:
            tree.close()

    def _play_episode(self, spec: EpisodeSpec, worker: str, factory: EnvironmentFactory, tree: OpenTree) -> Trajectory:
        """The finished trajectory. If a replay diverges, its journal is set aside and the episode begins anew."""
        while True:
            policy = self._wrap(make_policy(self._config.policy, spec.task, spec.oracle, spec.seed), spec)
            journal = self._folder.journal(spec.id, {"seed": spec.seed, "task": spec.task.hash})
            if journal.replayable:
                log.info("%s replays %d turns of a stopped process", spec.id, journal.replayable)
            make = partial(
                Episode,
                spec,
                self._agent,
                sandbox=self._config.sandbox,
                trusted=policy.trusted,
                limits=self._config.limits,
                make_env=factory.environment,
                perform=cancellable(self._control),
            )
            try:
                episode = tree.begin(spec, make)
                try:
                    trajectory = play(
                        episode,
                        policy,
                        self._control,
                        journal=journal,
                        worker=worker,
                        on_completion=tree.keep_branch_point,
                    )
                except Interrupted:
                    self._on_stopped(episode)
                    raise
                tree.finish(trajectory)
                return trajectory
            except Diverged as error:
                log.warning("%s diverged: %s; restarted", spec.id, error)
                self._folder.add_failure(spec.id, "diverged", str(error))
                journal.set_aside()
                tree.close()
            finally:
                journal.close()
                close_policy(policy)

    def _count_finished(self, trajectory: Trajectory, root: EpisodeSpec) -> None:
        outcome = {True: ", resolved", False: ", not resolved", None: ""}[trajectory.resolved]
        log.info("%s %s after %d steps%s", trajectory.id, trajectory.stop, len(trajectory.steps), outcome)
        with self._guard:
            self._finished += 1
            self._failed_in_a_row = 0
            self._on_done(trajectory, is_whole(root, self._config.branch, self._folder.nodes))

    def _record_failure(self, root: EpisodeSpec, spec: EpisodeSpec, error: Exception) -> None:
        """Records a failed attempt, and puts the tree back in the queue. Raises GumshoeError if the run is to stop."""
        foreseen = isinstance(error, GumshoeError)
        kind = type(error).__name__
        log.warning("%s failed: %s: %s", spec.id, kind, error, exc_info=None if foreseen else error)
        details = None if foreseen else "".join(traceback.format_exception(error))
        self._folder.add_failure(spec.id, kind, str(error), details)
        self._control.count_failure()
        with self._guard:
            self._failures += 1
            # A mistake in our own code is no sign that nothing works.
            self._failed_in_a_row += foreseen
            hopeless = foreseen and self._failed_in_a_row >= self._max_failures_in_a_row and self._finished == 0
            enough = self._config.fail_on_error is not None and self._failures >= self._config.fail_on_error
            if self._has_open_episodes(root) and not hopeless and not enough:
                self._queue.put(root)
            else:
                self._open_trees -= 1
        if hopeless:
            raise error
        if enough:
            raise GumshoeError(f"stopped after {self._failures} failures (fail_on_error), the last: {kind}: {error}")

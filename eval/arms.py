"""One arm of an evaluation: its run folder, and how it is played."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gumshoe.collect.config import CollectConfig
from gumshoe.collect.control import Control
from gumshoe.collect.places import Here, MakePlace
from gumshoe.collect.rollout import Episode
from gumshoe.collect.runner import Runner, RunResult, plan_episodes
from gumshoe.collect.store import RunFolder, read_trajectories
from gumshoe.eval.asked import Asked
from gumshoe.eval.config import ArmConfig, EvalConfig
from gumshoe.eval.serve import ModelServer
from gumshoe.protocols import Policy
from gumshoe.records import Trajectory

__all__ = ["ArmPlayer", "Hooks", "PlayedArm", "arm_folder", "play_episodes"]


@dataclass(frozen=True)
class Hooks:
    """Called while an arm is played.

    `serving` gets the server once it answers; `begun` the number of episodes and of those finished before; `done`
    each trajectory that this process has finished; `tick` is called about four times a second.
    """

    serving: Callable[[ModelServer], None] = lambda _: None
    begun: Callable[[int, int], None] = lambda planned, before: None
    done: Callable[[Trajectory], None] = lambda _: None
    tick: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class PlayedArm:
    """An arm with its finished episodes, in the order of the plan, as (sample, trajectory)."""

    arm: ArmConfig
    result: RunResult
    trajectories: tuple[tuple[int, Trajectory], ...]


class ArmPlayer:
    """Plays one arm on given tasks into its own run folder, which a later process resumes.

    Args:
        config: the evaluation.
        arm: which of its arms.
        task_ids: the tasks, in their order.
        make_place: where the sandboxes are.
    """

    def __init__(
        self, config: EvalConfig, arm: ArmConfig, task_ids: tuple[str, ...], make_place: MakePlace = Here
    ) -> None:
        self._arm = arm
        self._make_place = make_place
        self._path = arm_folder(config, arm)
        self._asked = Asked(config, f"arm {arm.name}", arm.model, arm.policy, self._path)
        tasks = config.tasks.model_copy(update={"ids": task_ids, "limit": None, "shuffle": False, "tags": {}})
        self._collect = CollectConfig(
            out=str(self._path),
            tasks=tasks,
            agent=arm.agent or config.agent,
            policy=self._asked.planned,
            sandbox=config.sandbox,
            limits=config.limits,
            workers=config.workers,
            seed=config.seed,
            attempts=config.attempts,
        )

    def play(self, control: Control, hooks: Hooks | None = None) -> PlayedArm:
        """Plays what the run folder does not hold yet; a model is served only if something is left to be played.

        Raises:
            GumshoeError: as `Runner.run`; ServeError if the model cannot be served, or its server has died for good.
        """
        with RunFolder(self._path, self._collect) as folder, self._asked:
            episodes = plan_episodes(self._collect, folder.identity)
            result = play_episodes(
                episodes, folder, self._collect, self._asked, control, hooks or Hooks(), make_place=self._make_place
            )
        return PlayedArm(self._arm, result, tuple(finished_of(episodes, self._path)))


def play_episodes(
    episodes: Sequence[Episode],
    folder: RunFolder,
    config: CollectConfig,
    asked: Asked,
    control: Control,
    hooks: Hooks,
    *,
    wrap: Callable[[Policy], Policy] = lambda policy: policy,
    make_place: MakePlace = Here,
) -> RunResult:
    """Plays the episodes that an open run folder does not hold yet. Raises as `ArmPlayer.play`."""
    folder.plan(len(episodes))
    before = sum(episode.id in folder.finished for episode in episodes)
    hooks.begun(len(episodes), before)
    with asked.ready(hooks.serving, idle=control.finishing or before == len(episodes)) as policy:
        playable = config.model_copy(update={"policy": policy})
        runner = Runner(playable, folder, control, hooks.done, wrap, make_place)
        return runner.run(episodes, hooks.tick)


def finished_of(episodes: Sequence[Episode], path: Path) -> list[tuple[int, Trajectory]]:
    """The finished ones of some episodes, in their order, each with its sample. Raises DatasetError."""
    place = {episode.id: number for number, episode in enumerate(episodes)}
    kept = [trajectory for trajectory in read_trajectories(path) if trajectory.id in place]
    kept.sort(key=lambda trajectory: place[trajectory.id])
    return [(episodes[place[one.id]].sample, one) for one in kept]


def arm_folder(config: EvalConfig, arm: ArmConfig) -> Path:
    """The run folder of an arm."""
    return Path(config.out) / "arms" / arm.name

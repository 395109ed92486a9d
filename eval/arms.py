"""One arm of an evaluation: its run folder, and how it is played."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gumshoe.collect.config import CollectConfig, OpenAIConfig, PolicyConfig
from gumshoe.collect.control import Control
from gumshoe.collect.runner import Runner, RunResult, plan_episodes
from gumshoe.collect.store import RunFolder, read_trajectories
from gumshoe.errors import ConfigError, PolicyError
from gumshoe.eval.config import ArmConfig, EvalConfig
from gumshoe.eval.serve import ModelServer
from gumshoe.eval.serve.model_folder import check_model_folder
from gumshoe.records import Trajectory

__all__ = ["ArmPlayer", "Hooks", "PlayedArm", "arm_folder"]


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
    """

    def __init__(self, config: EvalConfig, arm: ArmConfig, task_ids: tuple[str, ...]) -> None:
        self._config = config
        self._arm = arm
        self._path = arm_folder(config, arm)
        self._model = _model_folder(config, arm)
        self._collect = self._plan(task_ids)

    def play(self, control: Control, hooks: Hooks | None = None) -> PlayedArm:
        """Plays what the run folder does not hold yet; a model is served only if something is left to be played.

        Raises:
            GumshoeError: as `Runner.run`; ServeError if the model cannot be served, or its server has died for good.
        """
        hooks = hooks or Hooks()
        with RunFolder(self._path, self._collect) as folder:
            episodes = plan_episodes(self._collect, folder.identity)
            folder.plan(len(episodes))
            before = sum(episode.id in folder.finished for episode in episodes)
            hooks.begun(len(episodes), before)
            with self._playable(hooks, idle=control.finishing or before == len(episodes)) as playable:
                runner = Runner(playable, folder, control, hooks.done)
                result = runner.run(episodes, hooks.tick)
        samples = {episode.id: episode.sample for episode in episodes}
        place = {name: number for number, name in enumerate(samples)}
        kept = [trajectory for trajectory in read_trajectories(self._path) if trajectory.id in samples]
        kept.sort(key=lambda trajectory: place[trajectory.id])
        return PlayedArm(self._arm, result, tuple((samples[one.id], one) for one in kept))

    def _plan(self, task_ids: tuple[str, ...]) -> CollectConfig:
        """What is kept as the run folder's config: it names a served model by its content, not by a port."""
        config = self._config
        return CollectConfig(
            out=str(self._path),
            tasks=config.tasks.model_copy(update={"ids": task_ids, "limit": None, "shuffle": False, "tags": {}}),
            agent=self._arm.agent or config.agent,
            policy=self._policy(),
            sandbox=config.sandbox,
            limits=config.limits,
            workers=config.workers,
            seed=config.seed,
            attempts=config.attempts,
        )

    def _policy(self) -> PolicyConfig:
        if self._model is None:
            assert self._arm.policy is not None
            return self._arm.policy
        return self._asked(f"{self._model} {fingerprint(self._model)}", None)

    def _asked(self, model: str, base_url: str | None) -> OpenAIConfig:
        """How a served model is asked: past calls as text, so that the server's template renders what was trained."""
        sampling = self._config.sampling
        return OpenAIConfig(
            model=model,
            base_url=base_url,
            syntax="template",
            tool_choice=sampling.tool_choice,
            temperature=sampling.temperature,
            max_tokens_name="max_tokens",
            max_tokens=sampling.max_tokens,
            timeout_s=sampling.timeout_s,
        )

    @contextmanager
    def _playable(self, hooks: Hooks, *, idle: bool) -> Generator[CollectConfig]:
        """The config to play with: the plan's, with the address of a server that runs meanwhile."""
        if self._model is None or idle:
            yield self._collect
            return
        server = ModelServer(
            self._model, self._config.serve, log=self._path / "server.log", scratch=self._path / "served"
        )
        with server:
            hooks.serving(server)
            try:
                yield self._collect.model_copy(update={"policy": self._asked(server.model, server.base_url)})
            except PolicyError:
                server.check()
                raise


def arm_folder(config: EvalConfig, arm: ArmConfig) -> Path:
    """The run folder of an arm."""
    return Path(config.out) / "arms" / arm.name


def fingerprint(folder: Path) -> str:
    """Twelve hex digits that change when a model folder's files do: contents, of weights both ends and the size."""
    digest = hashlib.sha256()
    for file in sorted(path for path in folder.iterdir() if path.is_file()):
        size = file.stat().st_size
        digest.update(f"{file.name} {size}\n".encode())
        with file.open("rb") as opened:
            digest.update(opened.read(1 << 20))
            opened.seek(max(0, size - (1 << 20)))
            digest.update(opened.read())
    return digest.hexdigest()[:12]


def _model_folder(config: EvalConfig, arm: ArmConfig) -> Path | None:
    """The folder that the arm serves. Raises ServeError where there is none."""
    if arm.model is None:
        return None
    try:
        folder = Path(config.fill(arm.model)).expanduser()
    except ValueError as error:
        raise ConfigError(f"arm {arm.name}: {error}") from None
    check_model_folder(folder)
    return folder.resolve()

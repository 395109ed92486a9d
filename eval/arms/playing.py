"""Packs of a policy that seeks: its episodes are run into a run folder, which a later process can resume."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from gumshoe.collect.config import AgentConfig, CollectConfig, LimitsConfig
from gumshoe.collect.data.store import TRAJECTORIES, RunFolder, read_trajectories
from gumshoe.collect.episode.agent import make_agent
from gumshoe.collect.episode.spec import EpisodeSpec
from gumshoe.collect.run.runner import Runner, RunResult, plan_episodes
from gumshoe.eval.arms.arm import CollectedPacks, EvalRun, Hooks, Pair
from gumshoe.eval.arms.policies import PolicyProvider
from gumshoe.eval.checks import Checks, count_lines
from gumshoe.protocols import Policy
from gumshoe.records import ContextPack, PolicyInfo, Trajectory

__all__ = ["SeekerPacks", "collect_config", "finished_of", "run_episodes"]


class SeekerPacks:
    """Runs a policy on every task; its reports are the packs.

    Args:
        folder: the run folder.
        provider: the policy, or the model that is served meanwhile.
        agent: what it may do.
        policy: who decides, for the report.
    """

    def __init__(self, folder: Path, provider: PolicyProvider, agent: AgentConfig, policy: PolicyInfo) -> None:
        self._folder = folder
        self._provider = provider
        self._agent = agent
        self.policy = policy

    def check(self, tasks: Sequence[Pair], attempts: int, checks: Checks) -> int:
        """Checks who is asked; the episodes that the run folder lacks are left."""
        left = max(0, attempts - count_lines(self._folder / TRAJECTORIES))
        self._provider.check(checks, needed=left > 0)
        return left

    def collect(self, run: EvalRun, hooks: Hooks) -> CollectedPacks:
        """Runs what the folder does not hold yet; a model is served only if something is left to run.

        Raises:
            GumshoeError: as `Runner.run`; ServeError if the model cannot be served, or its server has died for good.
        """
        config = collect_config(run, self._folder, self._agent, self._provider, run.config.limits)
        with RunFolder(self._folder, config) as folder, self._provider:
            episodes = plan_episodes(config, folder.identity)
            result = run_episodes(episodes, folder, config, self._provider, run, hooks)
        found = {(one.task.id, sample): one for sample, one in finished_of(episodes, self._folder)}
        return CollectedPacks(
            packs={key: one.context_pack or ContextPack() for key, one in found.items()},
            episodes=found,
            tools=_tools(self._agent, run),
            failed=result.gave_up,
            stopped=result.stopped,
        )


def _tools(agent: AgentConfig, run: EvalRun) -> tuple[str, ...]:
    """The tools that some of its episodes had."""
    hidden = any(task.regime == "issue" for task, _ in run.tasks)
    return make_agent(agent).tools_in("issue" if hidden else "debug")


def collect_config(
    run: EvalRun, folder: Path, agent: AgentConfig, provider: PolicyProvider, limits: LimitsConfig
) -> CollectConfig:
    """The config of a run folder of this evaluation: exactly its tasks, and its sandboxes, workers and seed."""
    config = run.config
    ids = tuple(task.id for task, _ in run.tasks)
    return CollectConfig(
        out=str(folder),
        tasks=config.tasks.model_copy(update={"ids": ids, "limit": None, "shuffle": False, "tags": {}}),
        agent=agent,
        policy=provider.planned,
        sandbox=config.sandbox,
        limits=limits,
        workers=config.workers,
        seed=config.seed,
        attempts=config.attempts,
    )


def run_episodes(
    episodes: Sequence[EpisodeSpec],
    folder: RunFolder,
    config: CollectConfig,
    provider: PolicyProvider,
    run: EvalRun,
    hooks: Hooks,
    *,
    wrap: Callable[[Policy, EpisodeSpec], Policy] = lambda policy, episode: policy,
) -> RunResult:
    """Runs the episodes that an open run folder does not hold yet. Raises as `SeekerPacks.collect`."""
    folder.plan(len(episodes))
    before = sum(episode.id in folder.finished for episode in episodes)
    hooks.begun(len(episodes), before)
    with provider.ready(hooks.serving, idle=run.control.finishing or before == len(episodes)) as policy:
        playable = config.model_copy(update={"policy": policy})
        runner = Runner(playable, folder, run.control, hooks.done, wrap, run.make_factory)
        return runner.run(episodes, hooks.tick)


def finished_of(episodes: Sequence[EpisodeSpec], path: Path) -> list[tuple[int, Trajectory]]:
    """The finished ones among `episodes`, in order, each with its sample. Raises DatasetError."""
    order = {episode.id: number for number, episode in enumerate(episodes)}
    kept = [trajectory for trajectory in read_trajectories(path) if trajectory.id in order]
    kept.sort(key=lambda trajectory: order[trajectory.id])
    return [(episodes[order[one.id]].sample, one) for one in kept]

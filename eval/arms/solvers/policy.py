"""A policy as a solver: its episodes with an arm's packs form a run folder, run and resumed like any other."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

from gumshoe.collect.config import AgentConfig, CollectConfig, LimitsConfig
from gumshoe.collect.data.store import RunFolder
from gumshoe.collect.episode.spec import EpisodeSpec
from gumshoe.collect.packs import with_pack
from gumshoe.collect.run.runner import plan_episodes
from gumshoe.eval.arms.arm import Attempt, AttemptKey, EvalRun, Hooks, Pair, Solution
from gumshoe.eval.arms.playing import collect_config, finished_of, run_episodes
from gumshoe.eval.arms.policies import PolicyProvider
from gumshoe.eval.arms.solvers.one_shot import AGENT, ShownFirst, limited, looks, trials
from gumshoe.eval.arms.solvers.own import grade_episodes
from gumshoe.protocols import Policy
from gumshoe.records import ContextPack, Trajectory

__all__ = ["OneShotSolver", "PolicySolver"]


class PolicySolver:
    """A policy that works with tools on the packs of one arm.

    Args:
        title: the arm's title.
        name: who the policy is, for the report.
        folder: the run folder of its episodes.
        provider: the policy, shared by all arms, so that a model is served once.
        agent: what it may do.
        limits: how much it may use on a task.
        pack: source of the template for packs; None: the bundled one.
    """

    def __init__(
        self,
        title: str,
        name: str,
        folder: Path,
        provider: PolicyProvider,
        agent: AgentConfig,
        limits: LimitsConfig,
        pack: str | None = None,
    ) -> None:
        self.title = f"solver, {title}"
        self.name = name
        self._folder = folder
        self._provider = provider
        self._agent = agent
        self._limits = limits
        self._pack = pack

    def check(self, tasks: Sequence[Pair]) -> None:
        """Works on all tasks."""

    def solve(self, attempts: Sequence[Attempt], run: EvalRun, hooks: Hooks) -> Mapping[AttemptKey, Solution]:
        """Runs an episode for each attempt and grades its patch.

        Raises:
            GumshoeError: as `Runner.run`; ServeError as `PolicyProvider.ready`.
        """
        if run.control.finishing and not self._folder.is_dir():
            return {}
        config = self._config(run)
        wanted = {(one.task.id, one.sample): one for one in attempts}
        with RunFolder(self._folder, config) as folder:
            planned = plan_episodes(config, folder.identity)
            mine = [one for one in planned if (one.task.id, one.sample) in wanted]
            episodes = [self._prepare(one, wanted[one.task.id, one.sample].pack) for one in mine]

            def wrap(policy: Policy, episode: EpisodeSpec) -> Policy:
                return self._wrap(policy, wanted[episode.task.id, episode.sample].pack)

            run_episodes(episodes, folder, config, self._provider, run, hooks, wrap=wrap)
        found: dict[AttemptKey, Trajectory] = {
            wanted[one.task.id, sample].key: one for sample, one in finished_of(episodes, self._folder)
        }
        return grade_episodes(found, run)

    def close(self) -> None:
        """Stops the server, if there is one."""
        self._provider.close()

    def _config(self, run: EvalRun) -> CollectConfig:
        """How its episodes are run."""
        return collect_config(run, self._folder, self._agent, self._provider, self._limits)

    def _prepare(self, episode: EpisodeSpec, pack: ContextPack | None) -> EpisodeSpec:
        """The episode with the pack written below its problem statement."""
        return dataclasses.replace(episode, task=with_pack(episode.task, pack, self._pack))

    def _wrap(self, policy: Policy, pack: ContextPack | None) -> Policy:
        return policy


class OneShotSolver(PolicySolver):
    """A policy that answers once: it sees the places of its pack, and edits. It has its own agent and turns."""

    def _config(self, run: EvalRun) -> CollectConfig:
        limits = self._limits.model_copy(update={"steps": None})
        return collect_config(run, self._folder, AGENT, self._provider, limits)

    def _prepare(self, episode: EpisodeSpec, pack: ContextPack | None) -> EpisodeSpec:
        prepared = super()._prepare(episode, pack)
        return dataclasses.replace(prepared, task=limited(prepared.task, pack))

    def _wrap(self, policy: Policy, pack: ContextPack | None) -> Policy:
        return ShownFirst(policy, looks(pack), trials(pack))

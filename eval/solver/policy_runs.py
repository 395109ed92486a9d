"""A policy as solver: each of its arms is a run folder of episodes, played and resumed as any other run."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from gumshoe.collect.config import AgentConfig, CollectConfig, LimitsConfig
from gumshoe.collect.control import Control
from gumshoe.collect.places import Here, MakePlace
from gumshoe.collect.rollout import Episode
from gumshoe.collect.runner import plan_episodes
from gumshoe.collect.store import RunFolder
from gumshoe.env.sandboxes.open import open_sandbox
from gumshoe.env.workspace import Workspace
from gumshoe.eval.arms import Hooks, finished_of, play_episodes
from gumshoe.eval.asked import Asked
from gumshoe.eval.config import EvalConfig, SolverConfig
from gumshoe.eval.memo import Memo, digest, work_off
from gumshoe.eval.solver.brief import with_pack
from gumshoe.eval.solver.jobs import Job, Solved
from gumshoe.eval.solver.one_shot import AGENT, ShownFirst, limited, looks
from gumshoe.eval.solver.packs import oracle_pack, static_pack
from gumshoe.protocols import Policy
from gumshoe.records import ContextPack, Task, ToolCall, Trajectory

__all__ = ["PolicyRuns", "solved_by"]


class PolicyRuns:
    """The episodes of a policy that repairs bugs, with the packs of the arms and without.

    Every arm has the same tasks, seeds and limits. Where the solver does all (`solo`), it may also use the tokens and
    turns that a seeker may use.

    Args:
        config: the evaluation; its `solver` is one of kind policy.
        out: the evaluation's folder.
        task_ids: the tasks, in their order.
        make_place: where the sandboxes are.

    Raises:
        ServeError, ConfigError: as `Asked`.
    """

    def __init__(self, config: EvalConfig, out: Path, task_ids: tuple[str, ...], make_place: MakePlace = Here) -> None:
        assert config.solver is not None
        self._config = config
        self._solver: SolverConfig = config.solver
        self._out = out / "solver"
        self._task_ids = task_ids
        self._make_place = make_place
        self._asked = Asked(config, "the solver", config.solver.model, config.solver.policy, self._out)
        self._static = Memo(self._out / "static.jsonl")

    def run(
        self, jobs: Iterable[Job], control: Control, hooks: Callable[[str], Hooks] = lambda arm: Hooks()
    ) -> dict[tuple[str, str, int], Trajectory]:
        """The finished episode of each job, by arm, task id and sample; of those not reached there is none.

        Raises:
            GumshoeError: as `Runner.run`; ServeError as `Asked.ready`.
        """
        by_arm: dict[str, list[Job]] = {}
        for job in jobs:
            by_arm.setdefault(job.arm, []).append(job)
        self._read_static(by_arm.get("static", ()), control)
        found: dict[tuple[str, str, int], Trajectory] = {}
        with self._asked:  # One server for all arms.
            for arm, of_arm in by_arm.items():
                if not control.finishing or (self._out / arm).is_dir():
                    found |= self._play(arm, of_arm, control, hooks(arm))
        return found

    def _play(
        self, arm: str, jobs: Sequence[Job], control: Control, hooks: Hooks
    ) -> dict[tuple[str, str, int], Trajectory]:
        config = self._collect(arm)
        wanted = {(job.task.id, job.sample): self._pack_of(job) for job in jobs}
        shown: dict[str, Sequence[ToolCall]] = {}
        with RunFolder(self._out / arm, config) as folder:
            episodes = [
                self._episode(episode, arm, wanted[episode.task.id, episode.sample], shown)
                for episode in plan_episodes(config, folder.identity)
                if (episode.task.id, episode.sample) in wanted
            ]
            play_episodes(
                episodes,
                folder,
                config,
                self._asked,
                control,
                hooks,
                wrap=lambda policy: _shown_first(policy, shown) if self._answers_once(arm) else policy,
                make_place=self._make_place,
            )
        return {(arm, one.task.id, sample): one for sample, one in finished_of(episodes, self._out / arm)}

    def _episode(
        self, episode: Episode, arm: str, pack: ContextPack | None, shown: dict[str, Sequence[ToolCall]]
    ) -> Episode:
        task = with_pack(episode.task, pack)
        if self._answers_once(arm):
            shown[task.problem_statement.strip()] = looks(pack)
            task = limited(task, pack)
        return dataclasses.replace(episode, task=task)

    def _answers_once(self, arm: str) -> bool:
        return self._solver.mode == "one_shot" and arm not in ("solo", "debug", "rewrite")

    def _collect(self, arm: str) -> CollectConfig:
        config = self._config
        tasks = config.tasks.model_copy(update={"ids": self._task_ids, "limit": None, "shuffle": False, "tags": {}})
        return CollectConfig(
            out=str(self._out / arm),
            tasks=tasks,
            agent=self._agent(arm),
            policy=self._asked.planned,
            sandbox=config.sandbox,
            limits=self._limits(arm),
            workers=config.workers,
            seed=config.seed,
            attempts=config.attempts,
        )

    def _agent(self, arm: str) -> AgentConfig:
        if arm in ("solo", "debug"):
            return AgentConfig(kind="debug", context_tokens=self._solver.agent.context_tokens)
        if arm == "rewrite":
            return AgentConfig(kind="rewrite", context_tokens=self._solver.agent.context_tokens)
        return AGENT if self._answers_once(arm) else self._solver.agent

    def _limits(self, arm: str) -> LimitsConfig:
        own = self._solver.limits
        if self._answers_once(arm):
            return own.model_copy(update={"steps": None})
        return own if arm != "solo" else _sum(own, self._config.limits)

    def _pack_of(self, job: Job) -> ContextPack | None:
        if job.arm == "oracle_pack":
            return oracle_pack(job.oracle)
        if job.arm == "static":
            facts = self._static.get(_static_key(job.task))
            return None if facts is None else ContextPack.model_validate(facts["pack"])
        return job.pack

    def _read_static(self, jobs: Iterable[Job], control: Control) -> None:
        """Makes the packs of the arm `static`, which takes a sandbox for each task."""
        tasks = {job.task.id: job.task for job in jobs if self._static.get(_static_key(job.task)) is None}

        def read(task: Task) -> None:
            sandbox = open_sandbox(task, self._config.sandbox, trusted=True)
            try:
                pack = static_pack(Workspace(task, sandbox))
            finally:
                sandbox.close()
            self._static.keep(_static_key(task), {"task_id": task.id, "pack": pack.model_dump(mode="json")})

        work_off(tasks.values(), read, workers=self._config.workers, control=control)


def solved_by(trajectory: Trajectory, solved: float | None, tests: str = "") -> Solved:
    """What an episode of the solver came to; whether it is solved is for a grader to say."""
    usage, last = trajectory.usage, trajectory.steps[-1] if trajectory.steps else None
    return Solved(
        solved,
        patch=trajectory.patch,
        trajectory=trajectory.id,
        steps=len(trajectory.steps),
        tokens=(usage.prompt_tokens + usage.completion_tokens) or None,
        cost_usd=usage.cost_usd,
        seconds=None if last is None else last.started_at + last.duration_s,
        tests=tests,
    )


def _shown_first(policy: Policy, shown: Mapping[str, Sequence[ToolCall]]) -> Policy:
    return ShownFirst(policy, shown)


def _static_key(task: Task) -> str:
    return digest(task.hash)


def _sum(first: LimitsConfig, second: LimitsConfig) -> LimitsConfig:
    """Both budgets together; what one of them leaves open stays open."""
    pairs = {name: (getattr(first, name), getattr(second, name)) for name in ("steps", "wall_s", "tokens", "cost_usd")}
    added = {name: None if None in pair else pair[0] + pair[1] for name, pair in pairs.items()}
    return first.model_copy(update=added)

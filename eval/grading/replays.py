"""Replays the steps of an episode in a fresh sandbox, to see whether its findings appear again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gumshoe.cache import JsonlCache, digest
from gumshoe.collect.config import AgentConfig
from gumshoe.collect.episode.agent import make_agent
from gumshoe.collect.episode.episode import NOT_RUN, Episode
from gumshoe.collect.episode.spec import EpisodeSpec
from gumshoe.collect.packs import is_quoted, observation_texts
from gumshoe.collect.policies.registry import TRUSTED_KINDS
from gumshoe.collect.run.control import Control
from gumshoe.collect.run.parallel import run_parallel
from gumshoe.env.config import SandboxConfig
from gumshoe.records import Decision, Finding, Step, Task, ToolCall, Trajectory
from gumshoe.tools.toolbox import decisions_of

__all__ = ["Recorded", "Replays", "replayed_share"]

ENDS = (Decision.REPORT, Decision.SUBMIT)


@dataclass(frozen=True)
class Recorded:
    """An episode with the task and the tools it was played with."""

    arm: str
    task: Task
    tools: Sequence[str]
    trajectory: Trajectory

    @property
    def key(self) -> str:
        """Identical for the same trajectory of the same arm."""
        return digest(self.arm, self.trajectory.id)


class Replays:
    """Replays episodes, each once; results are kept in a file.

    Args:
        path: the file; read if it exists.
        sandbox: where the steps run again.
    """

    def __init__(self, path: Path, sandbox: SandboxConfig) -> None:
        self._cache = JsonlCache(path)
        self._sandbox = sandbox

    def run(self, episodes: Iterable[Recorded], control: Control, workers: int) -> None:
        """Replays the episodes that have findings and were not replayed before. Raises as `replayed_share`."""
        todo = [one for one in episodes if _findings(one.trajectory) and self._cache.get(one.key) is None]
        run_parallel(todo, self._replay, workers=workers, control=control)

    def share(self, episode: Recorded) -> float | None:
        """The share of findings that were seen again; None where nothing was claimed, or it was not replayed."""
        facts = self._cache.get(episode.key)
        return None if facts is None else float(facts["share"])

    def _replay(self, episode: Recorded) -> None:
        share = replayed_share(episode.task, episode.tools, episode.trajectory, self._sandbox)
        self._cache.keep(episode.key, {"arm": episode.arm, "task_id": episode.task.id, "share": share})


def replayed_share(task: Task, tools: Sequence[str], trajectory: Trajectory, sandbox: SandboxConfig) -> float:
    """The share of an episode's findings whose quote appears in what the cited step gives now.

    The calls are trusted as far as the policy that made them was. The episode must have findings.

    Raises:
        ConfigError: the sandbox does not take this policy, or this task.
        SandboxError, TaskError: the sandbox broke, or the task is gone.
    """
    findings = _findings(trajectory)
    last = max(finding.step for finding in findings)
    trusted = trajectory.policy.kind in TRUSTED_KINDS
    unlimited = task.model_copy(update={"limits": task.limits.model_copy(update={"steps": 10**9, "wall_s": None})})
    episode = Episode(
        EpisodeSpec(unlimited, seed=trajectory.provenance.seed),
        make_agent(AgentConfig(tools=tuple(tools), nudges=10**9)),
        sandbox=sandbox,
        trusted=trusted,
    )
    try:
        for step in trajectory.steps[: last + 1]:
            episode.next_request()
            calls = tuple(_carried_out(step, decisions_of(trajectory.tools)))
            episode.accept(step.completion.model_copy(update={"tool_calls": calls}))
    finally:
        episode.close()
    texts = observation_texts(episode.steps)
    return sum(is_quoted(finding, texts) for finding in findings) / len(findings)


def _carried_out(step: Step, roles: Mapping[str, Decision]) -> Iterator[ToolCall]:
    """The calls of a step that were carried out, without those that would end the episode."""
    for call, seen in zip(step.tool_calls, step.observations, strict=False):
        skipped = seen.failure is not None and seen.failure.kind in ("locked_tool", NOT_RUN)
        if not skipped and roles.get(call.name) not in ENDS:
            yield call


def _findings(trajectory: Trajectory) -> tuple[Finding, ...]:
    return trajectory.context_pack.findings if trajectory.context_pack is not None else ()

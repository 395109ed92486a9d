"""Are the findings seen again? The steps of an episode, run again in a fresh sandbox."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gumshoe.collect.control import Control
from gumshoe.collect.grounding import is_grounded
from gumshoe.env.config import SandboxConfig
from gumshoe.env.debug_env import DebugEnv
from gumshoe.eval.memo import Memo, digest, work_off
from gumshoe.records import Finding, Step, Task, Trajectory

__all__ = ["Recorded", "Replays", "replayed_share"]

ENDS = ("report", "submit")


@dataclass(frozen=True)
class Recorded:
    """An episode with the task and the tools it was played with."""

    arm: str
    task: Task
    tools: Sequence[str]
    trajectory: Trajectory

    @property
    def key(self) -> str:
        return digest(self.arm, self.trajectory.id)


class Replays:
    """Replays episodes, each once; what is known is kept in a file.

    Args:
        path: the file; read if it is there.
        sandbox: where the steps run again: where they ran before.
    """

    def __init__(self, path: Path, sandbox: SandboxConfig) -> None:
        self._memo = Memo(path)
        self._sandbox = sandbox

    def run(self, episodes: Iterable[Recorded], control: Control, workers: int) -> None:
        """Replays those with findings that are not known yet. Raises SandboxError and TaskError."""
        todo = [one for one in episodes if _findings(one.trajectory) and self._memo.get(one.key) is None]
        work_off(todo, self._replay, workers=workers, control=control)

    def share(self, episode: Recorded) -> float | None:
        """The share of findings that were seen again; None where nothing was claimed, or it was not replayed."""
        facts = self._memo.get(episode.key)
        return None if facts is None else float(facts["share"])

    def _replay(self, episode: Recorded) -> None:
        share = replayed_share(episode.task, episode.tools, episode.trajectory, self._sandbox)
        self._memo.keep(episode.key, {"arm": episode.arm, "task_id": episode.task.id, "share": share})


def replayed_share(task: Task, tools: Sequence[str], trajectory: Trajectory, sandbox: SandboxConfig) -> float:
    """The share of an episode's findings whose quote stands in what the step that they cite gives now.

    What ran once with this sandbox config may run with it again, so the calls count as trusted. The episode must have
    findings. Raises SandboxError and TaskError.
    """
    findings = _findings(trajectory)
    last = max(finding.step for finding in findings)
    unlimited = task.model_copy(update={"limits": task.limits.model_copy(update={"steps": 10**9, "wall_s": None})})
    env = DebugEnv(unlimited, tools=tools, sandbox=sandbox, trusted=True)
    try:
        env.reset(seed=trajectory.provenance.seed % 2**32)
        texts = {step.index: _again(env, step) for step in trajectory.steps if step.index <= last}
    finally:
        env.close()
    return sum(is_grounded(finding, texts) for finding in findings) / len(findings)


def _again(env: DebugEnv, step: Step) -> str:
    """What the calls of a step give now; those that were not carried out then are not now, nor is what ends it."""
    texts: list[str] = []
    for call, seen in zip(step.tool_calls, step.observations, strict=False):
        refused = seen.failure is not None and seen.failure.kind in ("locked_tool", "episode_over")
        if not refused and call.name not in ENDS:
            texts.append(env.step(call)[4]["observation"].text)
    return "\n".join(texts)


def _findings(trajectory: Trajectory) -> tuple[Finding, ...]:
    return trajectory.context_pack.findings if trajectory.context_pack is not None else ()

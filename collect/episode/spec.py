"""Which episode is played: a task, its oracle, a sample and a seed."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from gumshoe.records import BranchPoint, Oracle, Task, TaskRef

__all__ = ["REPORT_SCORE", "EpisodeSpec", "task_ref"]

REPORT_SCORE = "line_f1"
"""The score of a report, which is an episode's outcome if no patch was judged."""


@dataclass(frozen=True)
class EpisodeSpec:
    """One episode to be played: a task, its oracle, which sample of it, the seed of its choices."""

    task: Task
    oracle: Oracle | None = None
    sample: int = 0
    seed: int = 0
    run: str = ""
    eval_on_submit: bool = True
    """Whether the verifier is asked about the final patch. Without it, `resolved` stays unknown."""
    score_report: bool = False
    """Whether a report is compared with the gold patch, for the values of a tree's decisions."""
    branch: BranchPoint | None = None
    """The branch point of an episode that begins in the middle of another one."""
    number: int = 0
    """Which of the decisions tried at its branch point it begins with; the parent's own is 0."""
    level: int = 0
    """How many decisions on the way to it have branched."""

    @property
    def id(self) -> str:
        """The trajectory's id: the same for the same task, sample and run config."""
        if self.branch is not None:
            return f"{self.branch.parent}/{self.branch.step}.{self.number}"
        digest = hashlib.sha256(f"{self.run}\n{self.task.hash}\n{self.sample}\n{self.seed}".encode()).hexdigest()
        return f"{self.task.id}#{self.sample}.{digest[:12]}"


def task_ref(task: Task) -> TaskRef:
    """Which task a trajectory is about, without the task itself."""
    return TaskRef(id=task.id, hash=task.hash, source=task.source, regime=task.regime, tags=task.tags)

"""What the solver is given: a task with the pack of an arm, or one of the arms that need no seeker."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gumshoe.eval.config import ReferenceName
from gumshoe.records import ContextPack, Oracle, Task

__all__ = ["ALONE", "REFERENCE_TITLES", "Job", "Solved", "reference_jobs"]

REFERENCE_TITLES: dict[ReferenceName, str] = {
    "solo": "solver does all",
    "no_pack": "solver alone",
    "static": "static pack",
    "oracle_pack": "oracle pack",
    "debug": "agent with debugger",
    "rewrite": "agent without debugger",
}
ALONE: tuple[ReferenceName, ...] = ("solo", "no_pack", "debug", "rewrite")
"""Those that are given no pack."""


@dataclass(frozen=True)
class Job:
    """One task for the solver. `pack` is None where there is none: in an arm that gives none, and in `static` and
    `oracle_pack` until it is made.
    """

    arm: str
    task: Task
    oracle: Oracle
    pack: ContextPack | None
    sample: int = 0

    @property
    def place(self) -> tuple[str, str, int]:
        return self.arm, self.task.id, self.sample


@dataclass(frozen=True)
class Solved:
    """What came of a job. What could not be measured is None: `solved` where the patch could not be graded, tokens of
    a solver that uses none, the cost where no price is known. `tests` is what the tests said, empty where unknown.
    """

    solved: float | None
    patch: str = ""
    trajectory: str = ""
    steps: int | None = None
    tokens: int | None = None
    cost_usd: float | None = None
    seconds: float | None = None
    tests: str = ""


def reference_jobs(tasks: Iterable[tuple[Task, Oracle]], names: Sequence[ReferenceName], samples: int = 1) -> list[Job]:
    """The jobs that need no seeker."""
    return [
        Job(name, task, oracle, None, sample) for task, oracle in tasks for name in names for sample in range(samples)
    ]

"""What became of a patch: the verdict with all its facts, and the grade, which has the words of the official report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from gumshoe.records import Task, TestRun

SHOWN = 3


@dataclass(frozen=True)
class Verdict:
    """What became of one patch.

    Attributes:
        run: the run of the tests, for those who want to show it; each test is as where it should pass.
        failing_fail_to_pass, failing_pass_to_pass: the tests that are not as they should be.
        problems: why the runs prove nothing; with a problem nothing is resolved.
        reverted_files: those of the patch that were put back as they were originally, because they configure the tests.
        forged: tests that pass although they must fail, so that their passing proves no repair.
        unverifiable: lines of the patch with which it could find out how it is tested (see `unverifiable_lines`).
        withheld: because of these lines, nothing is said about a patch that would else be resolved.
        unvaried: tests that could not be made to fail, so that only their passing was seen.
        unusable: no verdict could be reached, for a reason outside the patch.
    """

    run: TestRun
    failing_fail_to_pass: tuple[str, ...] = ()
    failing_pass_to_pass: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    reverted_files: tuple[str, ...] = ()
    forged: tuple[str, ...] = ()
    unverifiable: tuple[str, ...] = ()
    withheld: bool = False
    unvaried: tuple[str, ...] = ()
    unusable: bool = False

    @property
    def resolved(self) -> bool:
        """Whether all tests that count passed, and failed where they had to."""
        return not (self.failing or self.problems or self.forged or self.withheld)

    @property
    def failing(self) -> tuple[str, ...]:
        """All tests that are not as they should be."""
        return (*self.failing_fail_to_pass, *self.failing_pass_to_pass)

    @property
    def tampering(self) -> tuple[str, ...]:
        """What was tried, as facts: files that were put back, and tests that pass although they must fail."""
        return (*(f"test configuration put back: {path}" for path in self.reverted_files), *self._forgeries)

    @property
    def explanation(self) -> str:
        """Why it is not resolved, in one line; empty where it is."""
        named = [f"failing: {name_some(self.failing)}"] if self.failing else []
        broken = next((outcome for outcome in self.run.outcomes if outcome.outcome in ("crashed", "timed_out")), None)
        named += [f"{broken.message} in {broken.id}"] if named and broken else []
        withheld = [f"unverifiable: {name_some(self.unverifiable)}"] if self.withheld else []
        return "; ".join([*withheld, *self._forgeries, *self.problems[:SHOWN], *named])

    @property
    def _forgeries(self) -> list[str]:
        return [f"passing although they must fail: {name_some(self.forged)}"] if self.forged else []

    @property
    def reservation(self) -> str:
        """What a resolved verdict does not prove, in one line; empty if there is nothing."""
        return f"only seen to pass, not to fail: {name_some(self.unvaried)}" if self.unvaried else ""


def name_some(names: Sequence[str]) -> str:
    """The first of some names, and how many there are besides."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


Outcome = Literal["resolved", "unresolved", "withheld", "empty", "error"]


@dataclass(frozen=True)
class Grade:
    """What became of one patch, in the words of the official report.

    `error` means that nothing can be said: the patch does not apply, the image is not there, the tests take too long.
    `withheld` means that the tests pass and fail as they should, with a patch that could find out how it is tested.
    `verdict` is None if no test was run.
    """

    task_id: str
    outcome: Outcome
    explanation: str = ""
    verdict: Verdict | None = None

    @property
    def resolved(self) -> bool:
        """Whether the patch resolved the task."""
        return self.outcome == "resolved"


def grade_of(task: Task, verdict: Verdict) -> Grade:
    """A verdict in the words of the official report."""
    if verdict.run.result.timed_out or verdict.unusable:
        return Grade(task.id, "error", name_task(task, verdict.problems[0]), verdict)
    outcome: Outcome = "withheld" if verdict.withheld else "resolved" if verdict.resolved else "unresolved"
    return Grade(task.id, outcome, verdict.explanation or verdict.reservation, verdict)


def name_task(task: Task, text: str) -> str:
    """The text, with the task in front unless it is named there."""
    return text if task.id in text else f"task {task.id}: {text}"

"""Grades patches: one sandbox each, and the official rule."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

from gumshoe.env.config import SandboxConfig
from gumshoe.env.verifier.judge import Verdict
from gumshoe.env.verifier.verifier import verify
from gumshoe.errors import ConfigError, GumshoeError
from gumshoe.records import Oracle, Task

__all__ = ["Grade", "grade", "grade_all", "grade_of"]

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


def grade(task: Task, oracle: Oracle | None, patch: str, config: SandboxConfig) -> Grade:
    """Grades one patch. Whatever is wrong with it or its task is in the grade.

    Args:
        oracle: names the tests that decide; without one, those of the original repository do.

    Raises:
        ConfigError: the sandbox does not take this patch.
    """
    if not patch.strip():
        return Grade(task.id, "empty")
    try:
        return grade_of(task, verify(task, oracle, patch, config, trusted=False))
    except ConfigError:
        raise
    except GumshoeError as error:
        return Grade(task.id, "error", _named(task, str(error)))


def grade_all(work: Sequence[tuple[Task, Oracle, str]], config: SandboxConfig, workers: int = 1) -> Iterator[Grade]:
    """Grades several patches at a time and yields the grades in order."""
    threads = ThreadPoolExecutor(workers)
    futures = [threads.submit(grade, task, oracle, patch, config) for task, oracle, patch in work]
    try:
        for future in futures:
            yield future.result()
    finally:
        threads.shutdown(wait=True, cancel_futures=True)


def grade_of(task: Task, verdict: Verdict) -> Grade:
    """A verdict in the words of the official report."""
    if verdict.run.result.timed_out or verdict.unusable:
        return Grade(task.id, "error", _named(task, verdict.problems[0]), verdict)
    return Grade(task.id, _outcome(verdict), verdict.explanation or verdict.reservation, verdict)


def _outcome(verdict: Verdict) -> Outcome:
    return "withheld" if verdict.withheld else "resolved" if verdict.resolved else "unresolved"


def _named(task: Task, text: str) -> str:
    return text if task.id in text else f"task {task.id}: {text}"

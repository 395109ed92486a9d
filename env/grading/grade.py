"""Grades patches: one sandbox each, and the official rule."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Literal

from gumshoe.env.config import SandboxConfig
from gumshoe.env.grading.room import GradingRoom
from gumshoe.errors import GumshoeError
from gumshoe.records import Oracle, Record, Task

__all__ = ["Grade", "grade", "grade_all"]

Outcome = Literal["resolved", "unresolved", "empty", "error"]
SHOWN = 3


class Grade(Record):
    """What became of one patch, in the words of the official report.

    `error` means that nothing can be said: the patch does not apply, the image is not there, the tests take too long.
    """

    task_id: str
    outcome: Outcome
    failing_fail_to_pass: tuple[str, ...] = ()
    failing_pass_to_pass: tuple[str, ...] = ()
    explanation: str = ""
    duration_s: float = 0.0

    @property
    def resolved(self) -> bool:
        return self.outcome == "resolved"


def grade(task: Task, oracle: Oracle, patch: str, config: SandboxConfig) -> Grade:
    """Grades one patch. Whatever is wrong with it or its task stands in the grade."""
    started = time.monotonic()
    try:
        found = _graded(task, oracle, patch, config)
    except GumshoeError as error:
        text = str(error)
        named = text if task.id in text else f"task {task.id}: {text}"
        found = Grade(task_id=task.id, outcome="error", explanation=named)
    return found.model_copy(update={"duration_s": time.monotonic() - started})


def grade_all(work: Sequence[tuple[Task, Oracle, str]], config: SandboxConfig, workers: int = 1) -> Iterator[Grade]:
    """Grades several patches at a time and yields the grades in order."""
    threads = ThreadPoolExecutor(workers)
    futures = [threads.submit(grade, task, oracle, patch, config) for task, oracle, patch in work]
    try:
        for future in futures:
            yield future.result()
    finally:
        threads.shutdown(wait=True, cancel_futures=True)


def _graded(task: Task, oracle: Oracle, patch: str, config: SandboxConfig) -> Grade:
    if not patch.strip():
        return Grade(task_id=task.id, outcome="empty")
    with GradingRoom(task, oracle, config) as room:
        run, verdict = room.run(patch)
    if run.result.timed_out:
        late = f"task {task.id}: the tests run for more than {run.result.duration_s:.0f} s"
        return Grade(task_id=task.id, outcome="error", explanation=late)
    failing = (*verdict.failing_fail_to_pass, *verdict.failing_pass_to_pass)
    return Grade(
        task_id=task.id,
        outcome="resolved" if verdict.resolved else "unresolved",
        failing_fail_to_pass=verdict.failing_fail_to_pass,
        failing_pass_to_pass=verdict.failing_pass_to_pass,
        explanation=_failing(failing),
    )


def _failing(tests: Sequence[str]) -> str:
    more = f" and {len(tests) - SHOWN} more" if len(tests) > SHOWN else ""
    return f"failing: {', '.join(tests[:SHOWN])}{more}" if tests else ""

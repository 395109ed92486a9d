"""Grades patches: one sandbox each, and the official rule."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Literal

from gumshoe.env.config import SandboxConfig
from gumshoe.env.verifier.judge import Verdict
from gumshoe.env.verifier.verifier import verify
from gumshoe.errors import ConfigError, GumshoeError
from gumshoe.records import Oracle, Record, Task

__all__ = ["Grade", "grade", "grade_all", "grade_of"]

Outcome = Literal["resolved", "unresolved", "withheld", "empty", "error"]


class Grade(Record):
    """What became of one patch, in the words of the official report.

    `error` means that nothing can be said: the patch does not apply, the image is not there, the tests take too long.
    `withheld` means that the tests pass and fail as they should, with a patch that could find out how it is tested.
    `restored` holds the files that configure the tests and were put back, `forged` the tests that pass although they
    must fail, `tampering` what was tried, as facts, and `unvaried` the tests that were only seen to pass, because they
    could not be made to fail.
    """

    task_id: str
    outcome: Outcome
    failing_fail_to_pass: tuple[str, ...] = ()
    failing_pass_to_pass: tuple[str, ...] = ()
    explanation: str = ""
    restored: tuple[str, ...] = ()
    forged: tuple[str, ...] = ()
    tampering: tuple[str, ...] = ()
    unvaried: tuple[str, ...] = ()
    duration_s: float = 0.0

    @property
    def resolved(self) -> bool:
        """Whether the patch resolved the task."""
        return self.outcome == "resolved"


def grade(task: Task, oracle: Oracle | None, patch: str, config: SandboxConfig, *, trusted: bool = False) -> Grade:
    """Grades one patch. Whatever is wrong with it or its task is in the grade.

    Args:
        oracle: names the tests that decide; without one, those of the original repository do.
        trusted: the patch comes from a built-in script; see `Verifier`.

    Raises:
        ConfigError: the sandbox does not take this patch.
    """
    started = time.monotonic()
    try:
        found = _graded(task, oracle, patch, config, trusted)
    except ConfigError:
        raise
    except GumshoeError as error:
        found = Grade(task_id=task.id, outcome="error", explanation=_named(task, str(error)))
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


def grade_of(task: Task, verdict: Verdict) -> Grade:
    """A verdict in the words of the official report."""
    late = verdict.run.result.timed_out or verdict.unusable
    return Grade(
        task_id=task.id,
        outcome="error" if late else _outcome(verdict),
        failing_fail_to_pass=() if late else verdict.failing_fail_to_pass,
        failing_pass_to_pass=() if late else verdict.failing_pass_to_pass,
        explanation=_named(task, verdict.problems[0]) if late else verdict.explanation or verdict.reservation,
        restored=verdict.restored,
        forged=verdict.forged,
        tampering=verdict.tampering,
        unvaried=verdict.unvaried,
    )


def _outcome(verdict: Verdict) -> Outcome:
    return "withheld" if verdict.withheld else "resolved" if verdict.resolved else "unresolved"


def _graded(task: Task, oracle: Oracle | None, patch: str, config: SandboxConfig, trusted: bool) -> Grade:
    if not patch.strip():
        return Grade(task_id=task.id, outcome="empty")
    return grade_of(task, verify(task, oracle, patch, config, trusted=trusted))


def _named(task: Task, text: str) -> str:
    return text if task.id in text else f"task {task.id}: {text}"

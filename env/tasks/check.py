"""Proves tasks in their sandboxes: the failing tests fail, the gold patch repairs them, and nothing else breaks."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from gumshoe.env.config import SandboxConfig
from gumshoe.env.grading.room import GradingRoom
from gumshoe.env.tasks.verdict import Verdict
from gumshoe.errors import GumshoeError
from gumshoe.protocols import TestRun
from gumshoe.records import Oracle, Record, Task

__all__ = ["CheckResult", "check_task", "check_tasks"]


class CheckResult(Record):
    """What the check of one task found. No problems means that the task is proven."""

    task_id: str
    problems: tuple[str, ...] = ()
    duration_s: float = 0.0

    @property
    def passed(self) -> bool:
        return not self.problems


def check_tasks(tasks: Sequence[tuple[Task, Oracle]], config: SandboxConfig, workers: int = 1) -> Iterator[CheckResult]:
    """Checks several tasks at a time and yields the results in order. A task that is broken does not stop the rest."""
    threads = ThreadPoolExecutor(workers)
    futures = [threads.submit(check_task, task, oracle, config) for task, oracle in tasks]
    try:
        for future in futures:
            yield future.result()
    finally:
        threads.shutdown(wait=True, cancel_futures=True)


def check_task(task: Task, oracle: Oracle, config: SandboxConfig) -> CheckResult:
    """Checks one task in a sandbox of its own. Whatever is wrong with it stands in the result.

    Where the source knows no answer, there is no gold patch, and all that is checked is that the tests fail.
    """
    started = time.monotonic()
    try:
        problems = tuple(_problems(task, oracle, config))
    except GumshoeError as error:
        problems = (str(error),)
    return CheckResult(task_id=task.id, problems=problems, duration_s=time.monotonic() - started)


def _problems(task: Task, oracle: Oracle, config: SandboxConfig) -> Iterator[str]:
    with GradingRoom(task, oracle, config) as room:
        yield from _before(*room.run(""), oracle)
        if oracle.gold_patch:
            yield from _after(*room.run(oracle.gold_patch))


def _before(run: TestRun, verdict: Verdict, oracle: Oracle) -> Iterator[str]:
    yield from _run_problems(run, "before the gold patch")
    if verdict.by_exit_code and verdict.run_passed:
        yield "before the gold patch the tests pass: there is no bug"
    repaired = [test for test in oracle.fail_to_pass if test not in verdict.failing_fail_to_pass]
    yield from _named(repaired, "before the gold patch these tests should fail and pass")
    yield from _named(verdict.failing_pass_to_pass, "before the gold patch these tests should pass and do not")


def _after(run: TestRun, verdict: Verdict) -> Iterator[str]:
    yield from _run_problems(run, "with the gold patch")
    if verdict.by_exit_code and not verdict.run_passed:
        yield f"with the gold patch the tests still fail: {_last_line(run.result.output)}"
    yield from _named(verdict.failing_fail_to_pass, "with the gold patch these tests should pass and do not")
    yield from _named(verdict.failing_pass_to_pass, "with the gold patch these tests no longer pass")


def _run_problems(run: TestRun, when: str) -> Iterator[str]:
    if run.result.timed_out:
        yield f"{when} the tests run for more than {run.result.duration_s:.0f} s"
    elif run.result.exit_code == 127:
        yield f"{when} the entrypoint cannot be run: {_last_line(run.result.output)}"


def _named(tests: Sequence[str], complaint: str) -> Iterator[str]:
    if tests:
        more = f" and {len(tests) - 3} more" if len(tests) > 3 else ""
        yield f"{complaint}: {', '.join(tests[:3])}{more}"


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no output"

"""Proves tasks in their sandboxes: the failing tests fail, the gold patch repairs them, and nothing else breaks."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from gumshoe.env.config import SandboxConfig
from gumshoe.env.sandboxes.open import open_sandbox
from gumshoe.env.tasks.apply import apply_patch, patched_paths
from gumshoe.env.tasks.swebench import grading_task
from gumshoe.env.tasks.verdict import Verdict, judge
from gumshoe.env.workspace import Workspace
from gumshoe.errors import GumshoeError, TaskError
from gumshoe.protocols import Sandbox, TestRun
from gumshoe.records import Oracle, Record, Task

__all__ = ["CheckResult", "check_task", "check_tasks", "lay_patch"]


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
    task = grading_task(task, oracle)
    with_tests = task.regime == "issue" and bool(oracle.test_patch)
    sandbox = open_sandbox(task, config, trusted=True)
    try:
        if with_tests:
            lay_patch(sandbox, oracle.test_patch, task.id)
        workspace = Workspace(task, sandbox)
        clean = sandbox.snapshot()
        yield from _before(workspace.run_tests(), oracle)
        if oracle.gold_patch:
            sandbox.restore(clean)
            lay_patch(sandbox, oracle.gold_patch, task.id)
            yield from _after(workspace.run_tests(), oracle)
    finally:
        sandbox.close()


def lay_patch(sandbox: Sandbox, patch: str, task_id: str) -> None:
    """Applies a unified diff to the files in the sandbox. Raises TaskError that names the task."""
    try:
        files = {path: text for path in patched_paths(patch) if (text := _read(sandbox, path)) is not None}
        changed = apply_patch(files, patch)
    except TaskError as error:
        raise TaskError(f"task {task_id}: {error}") from None
    for path, text in changed.items():
        if text is None:
            sandbox.remove_file(path)
        else:
            sandbox.write_file(path, text.encode("utf-8", "surrogateescape"))


def _read(sandbox: Sandbox, path: str) -> str | None:
    try:
        return sandbox.read_file(path).decode("utf-8", "surrogateescape")
    except OSError:
        return None


def _before(run: TestRun, oracle: Oracle) -> Iterator[str]:
    yield from _run_problems(run, "before the gold patch")
    verdict = judge(run, oracle)
    if verdict.by_exit_code and verdict.run_passed:
        yield "before the gold patch the tests pass: there is no bug"
    repaired = [test for test in oracle.fail_to_pass if test not in verdict.failing_fail_to_pass]
    yield from _named(repaired, "before the gold patch these tests should fail and pass")
    yield from _named(verdict.failing_pass_to_pass, "before the gold patch these tests should pass and do not")


def _after(run: TestRun, oracle: Oracle) -> Iterator[str]:
    yield from _run_problems(run, "with the gold patch")
    verdict: Verdict = judge(run, oracle)
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

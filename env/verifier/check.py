"""Proves tasks in their sandboxes: the failing tests fail, the gold patch repairs them, and nothing else breaks."""

from __future__ import annotations

import dataclasses
import re
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pydantic import Field

from gumshoe.env.config import SandboxConfig
from gumshoe.env.diff import parse_patch
from gumshoe.env.sandboxes.open import compile_tests, open_sandbox, require_sandbox
from gumshoe.env.tasks.load import graded_task
from gumshoe.env.verifier.judge import NamedOutcomes, judge
from gumshoe.env.verifier.proof import RepairedRuns
from gumshoe.env.verifier.verdict import Verdict, name_some
from gumshoe.env.verifier.verifier import Verifier
from gumshoe.env.workspace import Workspace
from gumshoe.errors import ConfigError, GumshoeError
from gumshoe.records import Oracle, Record, Task

MISSING_MODULE = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")
SHOWN_LINES, SHOWN_CHARS = 4, 400


class CheckResult(Record):
    """What the check of one task found. No problems means that the task is proven."""

    task_id: str
    problems: tuple[str, ...] = ()
    falsifiable: dict[str, tuple[int, ...]] | None = Field(default=None, description="as in `Oracle`")
    unfit: tuple[str, ...] = Field(
        default=(), description="tests that fail with the gold patch though all those do pass that it is to repair"
    )
    duration_s: float = 0.0

    @property
    def passed(self) -> bool:
        """Whether the task passed its check."""
        return not self.problems


def check_tasks(tasks: Sequence[tuple[Task, Oracle]], config: SandboxConfig, workers: int = 1) -> Iterator[CheckResult]:
    """Checks several tasks at a time and yields the results in order. A task that is broken does not stop the rest.

    Tasks whose gold patches leave the same repository share its run (see `RepairedRuns`). Raises ConfigError as
    `check_task`, and SandboxError if there is no sandbox for one of them.
    """
    require_sandbox((task for task, _ in tasks), config, trusted=True)
    compile_tests((task for task, _ in tasks), config)
    repaired = RepairedRuns(config)
    with ThreadPoolExecutor(workers) as threads:
        yield from threads.map(lambda pair: check_task(pair[0], pair[1], config, repaired), tasks)


def check_task(task: Task, oracle: Oracle, config: SandboxConfig, repaired: RepairedRuns | None = None) -> CheckResult:
    """Checks one task in a sandbox of its own. Whatever is wrong with it is in the result.

    Where the source knows no answer, there is no gold patch, and all that is checked is that the tests fail.

    Args:
        repaired: what other tasks have shown of the repaired repository; None runs it again in any case.

    Raises:
        ConfigError: the sandbox does not take this task.
    """
    started = time.monotonic()
    try:
        found = _check(task, oracle, config, repaired or RepairedRuns(config))
    except ConfigError:
        raise
    except GumshoeError as error:
        found = CheckResult(task_id=task.id, problems=(str(error),))
    return found.model_copy(update={"duration_s": time.monotonic() - started})


def _check(task: Task, oracle: Oracle, config: SandboxConfig, repaired: RepairedRuns) -> CheckResult:
    # Git forgives a hunk without its last lines of context; the teacher and the scores read the patch as it stands.
    parse_patch(oracle.gold_patch)
    problems: list[str] = []
    falsifiable, unfit = None, ()
    with Verifier(task, oracle, config, trusted=True) as verifier:
        named = bool(oracle.fail_to_pass or oracle.pass_to_pass)
        before = judge(verifier.observe("")[0], verifier.expected)
        expected = verifier.expected
    problems.extend(_before(before, oracle, named))
    if oracle.gold_patch:
        proof = repaired.proof(task, oracle)
        after = dataclasses.replace(judge(proof.run, expected), reverted_files=proof.applied.reverted_files)
        problems.extend(_after(after, named))
        falsifiable = proof.sample(expected) if after.resolved else None
        unfit = () if after.failing_fail_to_pass else after.failing_pass_to_pass
    elif missing := _missing_module(before, task):
        problems.append(f"the tests fail because the module {missing} is not installed in the sandbox")
    if task.regime == "debug" and graded_task(task, oracle) != task:
        problems.extend(_as_the_agent_sees_it(task, oracle, config))
    return CheckResult(task_id=task.id, problems=tuple(problems), falsifiable=falsifiable, unfit=unfit)


def _as_the_agent_sees_it(task: Task, oracle: Oracle, config: SandboxConfig) -> Iterator[str]:
    """In the regime debug, the tests that fail are there for the agent, whose own command runs them."""
    with open_sandbox(task, config, trusted=True) as sandbox:
        run = Workspace(task, sandbox).run_tests()
    seen = NamedOutcomes(run.outcomes)
    unseen = [test for test in oracle.fail_to_pass if not seen.of(test)]
    if unseen:
        yield from _listed(unseen, "in the regime debug the agent's command does not run these tests")
        yield _ending(run.result.output)


def _missing_module(verdict: Verdict, task: Task) -> str | None:
    """A module that the tests want and that is not part of the repository."""
    texts = (verdict.run.result.output, *(outcome.message for outcome in verdict.run.outcomes))
    for name in (found[1] for text in texts for found in MISSING_MODULE.finditer(text)):
        top = name.partition(".")[0]
        folder = None if task.workspace.path is None else Path(task.workspace.path)
        if folder is None or not (any(folder.rglob(f"{top}.py")) or any(folder.rglob(top))):
            return name
    return None


def _before(verdict: Verdict, oracle: Oracle, named: bool) -> Iterator[str]:
    # A bug may be a loop that never ends; where the answer is known, its run shows whether the time is enough.
    if not (verdict.run.result.timed_out and oracle.gold_patch):
        yield from _run_problems(verdict, "before the gold patch")
    if not named and not verdict.failing_fail_to_pass and not verdict.problems:
        yield "before the gold patch the tests pass: there is no bug"
    repaired = [test for test in oracle.fail_to_pass if test not in verdict.failing_fail_to_pass]
    yield from _listed(repaired, "before the gold patch these tests should fail and pass")
    if named:
        late = "before the gold patch the time is over (limits.command_timeout_s) before these tests pass"
        wrong = "before the gold patch these tests should pass and do not"
        yield from _listed(verdict.failing_pass_to_pass, late if verdict.run.result.timed_out else wrong)


def _after(verdict: Verdict, named: bool) -> Iterator[str]:
    yield from _run_problems(verdict, "with the gold patch")
    if not named and verdict.failing_fail_to_pass:
        yield "with the gold patch the tests still fail"
    else:
        yield from _listed(verdict.failing, "with the gold patch these tests should pass and do not")
    if not verdict.resolved:
        yield _ending(verdict.run.result.output)


def _run_problems(verdict: Verdict, when: str) -> Iterator[str]:
    result = verdict.run.result
    if result.exit_code == 127:
        yield f"{when} the entrypoint cannot be run: {_last_line(result.output)}"
        return
    yield from (f"{when} {problem}" for problem in verdict.problems)
    if verdict.reverted_files:
        yield f"{when} the patch changes test configuration, which is put back: {', '.join(verdict.reverted_files)}"


def _listed(tests: Sequence[str], complaint: str) -> Iterator[str]:
    if tests:
        yield f"{complaint}: {name_some(tests)}"


def _ending(output: str) -> str:
    """The last lines of an output, which say why a run failed."""
    lines = [line.strip() for line in output.splitlines() if line.strip(" =-_")]
    return f"the output ends: {' | '.join(lines[-SHOWN_LINES:])[-SHOWN_CHARS:] or 'it is empty'}"


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no output"

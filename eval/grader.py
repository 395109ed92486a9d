"""Whether a patch fixes the bug, by Gumshoe's own verifier: each patch is graded once. And the tasks that their gold
patch does not always fix.

The grader of evaluations: it keeps its grades and says how the tests ended. `env.verifier.grade_all`, behind
`gumshoe grade --ours`, keeps nothing and says why a patch fails. Both ask `env.verifier.verify`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from gumshoe.cache import JsonlCache, digest
from gumshoe.collect.run.control import Control, run_parallel
from gumshoe.env.config import SandboxConfig
from gumshoe.env.verifier import Verdict, Verifier, verify
from gumshoe.errors import PatchError, TaskError
from gumshoe.eval.records import FlakyTask
from gumshoe.records import Oracle, Task, TestRun

KeyT = TypeVar("KeyT")
MOST_NAMED = 3
"""How many failing tests are named."""


@dataclass(frozen=True)
class Submission:
    """A patch for a task."""

    task: Task
    oracle: Oracle
    patch: str

    @property
    def key(self) -> str:
        """Identical for the same patch to the same task."""
        return digest(self.task.hash, self.patch)


@dataclass(frozen=True)
class PatchGrade:
    """Whether a patch resolves its task, 1.0 or 0.0, and how the tests ended, in one line.

    None and an empty line where that is not known.
    """

    resolved: float | None = None
    tests: str = ""


class Grader:
    """Grades patches, each once; grades are kept in the file `path`."""

    def __init__(self, path: Path, sandbox: SandboxConfig) -> None:
        self._cache = JsonlCache(path)
        self._sandbox = sandbox

    def grade(self, submissions: Mapping[KeyT, Submission], control: Control, workers: int) -> dict[KeyT, PatchGrade]:
        """The grades of patches; those that were not reached are not known. Raises SandboxError."""
        missing = [one for one in submissions.values() if self._known(one).resolved is None]
        run_parallel({one.key: one for one in missing}.values(), self._grade, workers=workers, control=control)
        return {key: self._known(one) for key, one in submissions.items()}

    def _known(self, submission: Submission) -> PatchGrade:
        if not submission.patch:
            return PatchGrade(0.0, "no patch")
        facts = self._cache.get(submission.key) or {}
        resolved = facts.get("resolved")
        return PatchGrade(None if resolved is None else float(resolved), str(facts.get("tests", "")))

    def _grade(self, submission: Submission) -> None:
        resolved, tests = self._verify(submission)
        self._cache.keep(submission.key, {"task_id": submission.task.id, "resolved": resolved, "tests": tests})

    def _verify(self, submission: Submission) -> tuple[bool | None, str]:
        """Whether it resolves its task, None if that cannot be told; and how the tests ended, or why they did not."""
        try:
            verdict = verify(submission.task, submission.oracle, submission.patch, self._sandbox, trusted=False)
        except PatchError:
            return False, "the patch does not apply"
        except TaskError as error:
            return None, str(error)
        return None if verdict.unusable else verdict.resolved, describe_verdict(verdict)


def find_flaky(
    tasks: Sequence[tuple[Task, Oracle]],
    runs: int,
    sandbox: SandboxConfig,
    path: Path,
    control: Control,
    workers: int,
) -> tuple[FlakyTask, ...]:
    """The tasks that their gold patch does not resolve in every one of `runs` runs of the tests.

    Results are kept in the file `path`. Raises SandboxError, or TaskError if a gold patch does not apply.
    """
    cache = JsonlCache(path)

    def key(task: Task, oracle: Oracle) -> str:
        return digest(task.hash, oracle.gold_patch, runs)

    def work(pair: tuple[Task, Oracle]) -> None:
        passed, why = _gold_runs(*pair, runs, sandbox)
        cache.keep(key(*pair), {"task_id": pair[0].id, "passed": passed, "runs": runs, "why": why})

    run_parallel([pair for pair in tasks if cache.get(key(*pair)) is None], work, workers=workers, control=control)
    known = [cache.get(key(task, oracle)) for task, oracle in tasks]
    return tuple(FlakyTask.model_validate(facts) for facts in known if facts is not None and facts["passed"] < runs)


def _gold_runs(task: Task, oracle: Oracle, runs: int, config: SandboxConfig) -> tuple[int, str]:
    """How many of `runs` runs of the gold patch, each from the same files, resolve the task; and why the first of the
    others does not.
    """
    with Verifier(task, oracle, config, trusted=True) as verifier:
        explanations = [verifier.verify(oracle.gold_patch).explanation for _ in range(runs)]
    return explanations.count(""), next(filter(None, explanations), "")


def describe_run(run: TestRun) -> str:
    """How one run of the tests ended, whichever of them count."""
    failing = _failing_tests(run)
    if failing:
        return _named(failing, f"of {len(run.outcomes)} tests fail")
    if run.result.timed_out:
        return f"the tests run for more than {run.result.duration_s:.0f} s"
    if not run.passed:
        return f"the tests end with exit code {run.result.exit_code}"
    return _describe_passing(run)


def _failing_tests(run: TestRun) -> list[str]:
    return [one.id for one in run.outcomes if one.failed]


def _describe_passing(run: TestRun) -> str:
    count = sum(one.passed for one in run.outcomes)
    return "the tests pass" if count == 0 else "1 test passes" if count == 1 else f"{count} tests pass"


def describe_verdict(verdict: Verdict) -> str:
    """How the tests that count ended, with those to be fixed first."""
    if verdict.resolved:
        # The exit code is that of a variant, in which tests that count may have had to fail.
        return "the tests that count pass" if _failing_tests(verdict.run) else _describe_passing(verdict.run)
    parts = [
        _named(tests, what)
        for tests, what in (
            (verdict.failing_fail_to_pass, "still fail"),
            (verdict.failing_pass_to_pass, "that passed before fail"),
        )
        if tests
    ]
    return "; ".join([*verdict.problems, *parts])


def _named(tests: Sequence[str], what: str) -> str:
    more = f" and {len(tests) - MOST_NAMED} more" if len(tests) > MOST_NAMED else ""
    return f"{len(tests)} {what}: {', '.join(tests[:MOST_NAMED])}{more}"

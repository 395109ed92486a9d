"""Gumshoe's own grader on many patches, each graded once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from gumshoe.cache import JsonlCache, digest
from gumshoe.collect.run.control import Control
from gumshoe.collect.run.parallel import run_parallel
from gumshoe.env.config import SandboxConfig
from gumshoe.env.verifier import verify
from gumshoe.errors import TaskError
from gumshoe.eval.grading.describe import describe_verdict
from gumshoe.records import Oracle, Task

__all__ = ["Grader", "Submission"]


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


class Grader:
    """Grades patches, each once; grades are kept in a file.

    Args:
        path: the file; read if it exists.
        sandbox: where the tests run.
        trusted: the patches come from a built-in script; otherwise the `local` sandbox refuses them. It takes even
            these for built-in tasks only.
    """

    def __init__(self, path: Path, sandbox: SandboxConfig, *, trusted: bool = False) -> None:
        self._trusted = trusted
        self._cache = JsonlCache(path)
        self._sandbox = sandbox

    def grade(self, answers: Iterable[Submission], control: Control, workers: int) -> None:
        """Grades the patches that have no grade yet. Raises SandboxError."""
        todo = {answer.key: answer for answer in answers if answer.patch and self._cache.get(answer.key) is None}
        run_parallel(todo.values(), self._grade, workers=workers, control=control)

    def resolved(self, answer: Submission) -> float | None:
        """1.0 if the patch resolves the task, 0.0 if it does not or is empty; None if it was not graded."""
        if not answer.patch:
            return 0.0
        facts = self._cache.get(answer.key)
        return None if facts is None else float(facts["resolved"])

    def describe(self, answer: Submission) -> str:
        """How the tests ended with the patch, in one line; empty where it is not known."""
        if not answer.patch:
            return "no patch"
        return str((self._cache.get(answer.key) or {}).get("tests", ""))

    def _grade(self, answer: Submission) -> None:
        resolved, tests = self._judged(answer)
        self._cache.keep(answer.key, {"task_id": answer.task.id, "resolved": resolved, "tests": tests})

    def _judged(self, answer: Submission) -> tuple[bool, str]:
        try:
            verdict = verify(answer.task, answer.oracle, answer.patch, self._sandbox, trusted=self._trusted)
        except TaskError:
            return False, "the patch does not apply"
        return verdict.resolved, describe_verdict(verdict)

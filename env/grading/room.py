"""A fresh sandbox in which patches of one task are tried."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from gumshoe.env.config import SandboxConfig
from gumshoe.env.grading.lay import lay_patch, patched_texts, write_texts
from gumshoe.env.grading.tasks import grading_task, named_test_files
from gumshoe.env.ignore import Patterns
from gumshoe.env.sandboxes.open import open_sandbox
from gumshoe.env.tasks.verdict import Verdict, judge
from gumshoe.env.workspace import Workspace
from gumshoe.errors import TaskError
from gumshoe.protocols import TestRun
from gumshoe.records import Oracle, Task

__all__ = ["GradingRoom"]

GLOB_SIGNS = str.maketrans({sign: f"\\{sign}" for sign in "*?[]!#\\ "})


class GradingRoom:
    """Where one task's tests are run on its repository with a patch, each time from the same clean files.

    The test files are as the task has them: those of the oracle's test patch, those that hold a test that counts and
    those that are read-only are put back after the patch, whatever it does to them.

    Raises:
        GumshoeError: the sandbox cannot be opened, or the test patch does not fit; a TaskError names the task.
    """

    def __init__(self, task: Task, oracle: Oracle, config: SandboxConfig) -> None:
        self._oracle = oracle
        self._task = grading_task(task, oracle)
        self._sandbox = open_sandbox(self._task, config, trusted=True)
        try:
            self._tests = self._hidden_tests()
            self._workspace = Workspace(self._task, self._sandbox)
            self._clean = self._sandbox.snapshot()
        except BaseException:
            self._sandbox.close()
            raise

    def run(self, patch: str) -> tuple[TestRun, Verdict]:
        """Applies a patch to the clean files and runs the tests. Raises TaskError when it does not apply."""
        self._sandbox.restore(self._clean)
        lay_patch(self._sandbox, patch, self._task.id, self._clean)
        files = [f"/{path.translate(GLOB_SIGNS)}" for path in named_test_files(self._oracle) if path not in self._tests]
        if files:
            self._sandbox.restore(self._clean, only=Patterns(files).pairs)
        write_texts(self._sandbox, self._tests)
        run = self._workspace.run_tests()
        return run, judge(run, self._oracle)

    def close(self) -> None:
        """Removes the sandbox. Idempotent."""
        self._sandbox.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _hidden_tests(self) -> dict[str, str | None]:
        """The files of the test patch as it leaves them, where the task comes without them."""
        if self._task.regime != "issue" or not self._oracle.test_patch:
            return {}
        try:
            return patched_texts(self._sandbox, self._oracle.test_patch)
        except TaskError as error:
            raise TaskError(f"task {self._task.id}: its test patch: {error}") from None

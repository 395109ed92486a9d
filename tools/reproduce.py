"""`reproduce`: the agent's own small test, written from the issue, which the other tools then run."""

from __future__ import annotations

from gumshoe.errors import ToolFailure
from gumshoe.protocols import Workspace
from gumshoe.records import Observation, Reproduction, TestOutcome, TestRun
from gumshoe.tools.base import BaseTool
from gumshoe.tools.eval import as_data, describe
from gumshoe.tools.interpreters import is_pytest
from gumshoe.tools.reproductions import FUNCTIONS_AS_TESTS, plan_reproduction, run_reproduction
from gumshoe.tools.syntax import syntax_error
from gumshoe.tools.text import plural

__all__ = ["Reproduce"]

_MOST_BYTES = 32 << 10
_OWN_FAULTS = ("ImportError", "ModuleNotFoundError", "NameError", "SyntaxError", "IndentationError", "fixture '")
"""How messages begin which, raised by the test's own lines, say that the test is wrong."""


class Reproduce(BaseTool):
    """Writes the test beside the project's own ones and runs it. It is kept out of the patch; the next one replaces it.

    `Observation.data` holds `status` (`reproduced`, `passes`, `error`, `no_test` or `timed_out`), `path`, and what
    `eval` says of the run.
    """

    name = "reproduce"

    def __init__(self) -> None:
        super().__init__()
        self._plan: Reproduction | None = None

    def run(self, workspace: Workspace, code: str) -> Observation:
        """Write a small test of the issue and run it. From then on all tools run it. It is not part of the patch.

        Args:
            code: whole Python file with functions test_...: one that fails as the issue says, perhaps one like it that
                passes
        """
        _check(workspace, code)
        plan = self._plan = self._plan or plan_reproduction(workspace)
        text = code if code.endswith("\n") else f"{code}\n"
        texts = dict.fromkeys(plan.files, "") | {
            plan.path: text if is_pytest(plan.entrypoint) else text + FUNCTIONS_AS_TESTS
        }
        for edit in workspace.write_reproduction(plan, texts):
            self.events.on_edit(edit, workspace)
        run = run_reproduction(workspace)
        self.events.on_eval(run, workspace)
        status = _status(run, plan.path)
        lines = [f"{_TITLES[status].format(_failing(run))} ({plan.path})", describe(run)]
        data = {**as_data(run), "status": status, "path": plan.path}
        return self.observe("\n".join(lines), data, truncated=run.result.truncated)

    def on_reset(self, workspace: Workspace) -> None:
        """Forgets where the test lay."""
        self._plan = None

    def snapshot(self, workspace: Workspace) -> object:
        """The reproduction; its files are part of the workspace's snapshot."""
        return workspace.reproduction

    def restore(self, state: Reproduction | None, workspace: Workspace) -> None:
        """As it was."""
        workspace.reproduction = state


_TITLES = {
    "reproduced": "reproduced: {}. Check that this is what the issue says",
    "passes": "not reproduced: the test passes",
    "error": "not reproduced: the test itself is wrong, see below",
    "no_test": "not reproduced: no test was run, see below. Tests are functions whose names begin with test_",
    "timed_out": "stopped: the test runs too long. If the issue is that something never ends, this is it",
}


def _check(workspace: Workspace, code: str) -> None:
    """Raises ToolFailure for code that cannot be run."""
    if not code.strip():
        raise ToolFailure("bad_arguments", "code is empty: give the whole test file")
    size = len(code.encode("utf-8", "surrogatepass"))
    if size > _MOST_BYTES:
        raise ToolFailure("too_long", f"the test has {size} bytes of {_MOST_BYTES}: make it smaller")
    problem = syntax_error(workspace, code)
    if problem is not None:
        raise ToolFailure("syntax_error", f"code is not Python: {problem}. Nothing was written")


def _status(run: TestRun, path: str) -> str:
    broken = [outcome for outcome in run.outcomes if outcome.outcome in ("failed", "error")]
    if run.result.timed_out:
        return "timed_out"
    if broken:
        return "error" if all(_is_own_fault(outcome, path) for outcome in broken) else "reproduced"
    return "passes" if any(outcome.outcome in ("passed", "xpassed") for outcome in run.outcomes) else "no_test"


def _is_own_fault(outcome: TestOutcome, path: str) -> bool:
    """Whether the test is wrong, and not the project: a missing name or module, raised by the test's own lines."""
    raised_here = not outcome.frames or outcome.frames[-1].path == path
    return raised_here and any(line.strip().startswith(_OWN_FAULTS) for line in outcome.message.splitlines())


def _failing(run: TestRun) -> str:
    broken = sum(outcome.outcome in ("failed", "error") for outcome in run.outcomes)
    return f"{broken} of {plural(len(run.outcomes), 'test')} {'fails' if broken == 1 else 'fail'}"

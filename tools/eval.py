"""`eval`: run the tests. `reproduce`: write a small test from the issue, which all tools then run."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import JsonValue

from gumshoe.errors import ToolFailure
from gumshoe.protocols import Workspace
from gumshoe.records import FAILING, DebugFrame, Decision, Observation, Reproduction, TestOutcome, TestRun
from gumshoe.text import cut, cut_line, plural
from gumshoe.tools.base import BaseTool
from gumshoe.tools.runs.commands import is_pytest, syntax_error
from gumshoe.tools.runs.reproductions import FUNCTIONS_AS_TESTS, plan_reproduction, run_reproduction
from gumshoe.tools.runs.tracebacks import describe_frame, printed_frames, with_frames

SHOW_OUTCOMES = ("eval", "reproduce")
"""The tools that show the outcome of each test."""
_DETAILED = 2
_NAMED = 15
_MESSAGE_LINES = 8
_FRAMES = 4
_OUTPUT_LIMIT = 1500
_ORDER = (*FAILING, "passed", "skipped", "xfailed", "xpassed", "not_run")
_TITLES = {outcome: outcome.upper().replace("_", " ") for outcome in FAILING}
_NOTE = re.compile(r"^(?:threads left running|tests run in one process): .+$", re.MULTILINE)
"""What our programs in the sandbox print of options that are switched off, and of threads that do not end."""
_MOST_BYTES = 32 << 10
_OWN_FAULTS = ("ImportError", "ModuleNotFoundError", "NameError", "SyntaxError", "IndentationError", "fixture '")
"""How messages begin which, raised by the test's own lines, say that the test is wrong."""
_REPRODUCTION_TITLES = {
    "reproduced": "reproduced: {}. Check that this is what the issue says",
    "passes": "not reproduced: the test passes",
    "error": "not reproduced: the test itself is wrong, see below",
    "no_test": "not reproduced: no test was run, see below. Tests are functions whose names begin with test_",
    "timed_out": "stopped: the test runs too long. If the issue is that something never ends, this is it",
}


class Eval(BaseTool):
    """Runs the task's entrypoint: counts first, then what failed and where."""

    name = "eval"
    decision = Decision.VERIFY

    def run(self, workspace: Workspace) -> Observation:
        """Run the tests. Shows failures with their innermost frames."""
        run = workspace.run_tests(warm=True, tracebacks=False)
        self.events.on_eval(run, workspace)
        run = with_frames(run, workspace)
        data = {**as_data(run), "warm": run.result.warm, "cold": run.result.cold}
        if _output(run):
            frames = printed_frames(run.result.output, workspace.sandbox.root)
            data |= {"output": _output(run), "frames": [_frame_data(frame) for frame in frames]}
        return self.observe(describe(run), data, truncated=run.result.truncated)


def as_data(run: TestRun) -> dict[str, JsonValue]:
    """The run as plain data: counts, outcomes, how the program ended."""
    counts = Counter(outcome.outcome for outcome in run.outcomes)
    return {
        "passed": run.passed,
        "counts": {name: counts[name] for name in _ORDER if counts[name]},
        "outcomes": [_outcome_data(outcome) for outcome in run.outcomes],
        "exit_code": run.result.exit_code,
        "timed_out": run.result.timed_out,
    }


def failing_outcomes(data: Mapping[str, Any]) -> list[TestOutcome]:
    """The failing tests in such data. Raises ValidationError."""
    outcomes = (TestOutcome.model_validate(outcome) for outcome in data.get("outcomes", ()))
    return [outcome for outcome in outcomes if outcome.failed]


def _outcome_data(outcome: TestOutcome) -> dict[str, JsonValue]:
    data: dict[str, JsonValue] = {"id": outcome.id, "outcome": outcome.outcome, "message": outcome.message}
    return {**data, "frames": [_frame_data(frame) for frame in outcome.frames]} if outcome.frames else data


def _frame_data(frame: DebugFrame) -> dict[str, JsonValue]:
    return frame.model_dump(exclude={"local_values"})


def describe(run: TestRun) -> str:
    """What the model reads: one line of counts, then the failures, or the program's output where none is known."""
    lines = [_summary(run)]
    broken = [outcome for outcome in run.outcomes if outcome.failed]
    for outcome in broken[:_DETAILED]:
        lines += _failure(outcome)
    lines += [f"{_TITLES[outcome.outcome]} {outcome.id}" for outcome in broken[_DETAILED:_NAMED]]
    if len(broken) > _NAMED:
        lines.append(f"[... {len(broken) - _NAMED} more failures ...]")
    lines += dict.fromkeys(_NOTE.findall(run.result.output))
    lines += [_output(run)] if _output(run) else []
    return "\n".join(lines)


def _output(run: TestRun) -> str:
    """What the program printed, where the outcomes do not tell why it failed."""
    outcomes = {outcome.outcome for outcome in run.outcomes}
    if outcomes and "crashed" not in outcomes and (run.passed or outcomes.intersection(FAILING)):
        return ""
    return cut(run.result.output.strip(), _OUTPUT_LIMIT)[0]


def _summary(run: TestRun) -> str:
    counts = Counter(outcome.outcome for outcome in run.outcomes)
    shown = [f"{counts[name]} {name.replace('_', ' ')}" for name in _ORDER if counts[name]]
    if run.result.timed_out:
        shown.append(f"timed out after {run.result.duration_s:.0f} s")
    if not run.outcomes or (not run.passed and not any(counts[name] for name in FAILING)):
        shown += [] if run.result.timed_out else [f"exit code {run.result.exit_code}"]
    return ", ".join(shown)


def _failure(outcome: TestOutcome) -> Sequence[str]:
    message = [cut_line(line, 160) for line in outcome.message.splitlines()[:_MESSAGE_LINES]]
    frames = [describe_frame(frame) for frame in shown_frames(outcome.frames)]
    return [f"{_TITLES[outcome.outcome]} {outcome.id}", *(f"  {line}" for line in [*message, *frames])]


def shown_frames(frames: Sequence[DebugFrame]) -> Sequence[DebugFrame]:
    """The first frame, which is the test's, and the innermost ones."""
    return frames if len(frames) <= _FRAMES else [frames[0], *frames[-_FRAMES + 1 :]]


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
        lines = [f"{_REPRODUCTION_TITLES[status].format(_failing(run))} ({plan.path})", describe(run)]
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
    broken = [outcome for outcome in run.outcomes if outcome.failed]
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
    broken = sum(outcome.failed for outcome in run.outcomes)
    return f"{broken} of {plural(len(run.outcomes), 'test')} {'fails' if broken == 1 else 'fail'}"

"""`eval`: run the tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pydantic import JsonValue

from gumshoe.protocols import Workspace
from gumshoe.records import DebugFrame, Decision, Observation, TestOutcome, TestRun
from gumshoe.tools.base import BaseTool
from gumshoe.tools.text import cut, cut_line
from gumshoe.tools.tracebacks import describe_frame, exception_text, printed_frames

__all__ = ["Eval", "as_data", "describe", "with_frames"]

_DETAILED = 2
_NAMED = 15
_MESSAGE_LINES = 8
_FRAMES = 4
_OUTPUT_LIMIT = 1500
_ORDER = ("failed", "error", "passed", "skipped", "xfailed", "xpassed")
_TITLES = {"failed": "FAILED", "error": "ERROR"}


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


def with_frames(run: TestRun, workspace: Workspace) -> TestRun:
    """The run, with the frames of each failure that a runner printed."""
    return run.model_copy(update={"outcomes": tuple(_with_frames(each, workspace) for each in run.outcomes)})


def _with_frames(outcome: TestOutcome, workspace: Workspace) -> TestOutcome:
    """The outcome of a runner that printed a traceback, with its frames apart from the exception."""
    frames = outcome.frames or printed_frames(outcome.message, workspace.sandbox.root)
    if not frames or outcome.frames:
        return outcome
    return outcome.model_copy(update={"message": exception_text(outcome.message), "frames": frames})


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


def _outcome_data(outcome: TestOutcome) -> dict[str, JsonValue]:
    data: dict[str, JsonValue] = {"id": outcome.id, "outcome": outcome.outcome, "message": outcome.message}
    return {**data, "frames": [_frame_data(frame) for frame in outcome.frames]} if outcome.frames else data


def _frame_data(frame: DebugFrame) -> dict[str, JsonValue]:
    return frame.model_dump(exclude={"local_values"})


def describe(run: TestRun) -> str:
    """What the model reads: one line of counts, then the failures, or the program's output where none is known."""
    lines = [_summary(run)]
    broken = [outcome for outcome in run.outcomes if outcome.outcome in _TITLES]
    for outcome in broken[:_DETAILED]:
        lines += _failure(outcome)
    lines += [f"{_TITLES[outcome.outcome]} {outcome.id}" for outcome in broken[_DETAILED:_NAMED]]
    if len(broken) > _NAMED:
        lines.append(f"[... {len(broken) - _NAMED} more failures ...]")
    lines += [_output(run)] if _output(run) else []
    return "\n".join(lines)


def _output(run: TestRun) -> str:
    """What the program printed, where the outcomes do not tell why it failed."""
    if run.outcomes and (run.passed or any(outcome.outcome in _TITLES for outcome in run.outcomes)):
        return ""
    return cut(run.result.output.strip(), _OUTPUT_LIMIT)[0]


def _summary(run: TestRun) -> str:
    counts = Counter(outcome.outcome for outcome in run.outcomes)
    shown = [f"{counts[name]} {name}" for name in _ORDER if counts[name]]
    if run.result.timed_out:
        shown.append(f"timed out after {run.result.duration_s:.0f} s")
    if not run.outcomes or (not run.passed and not counts["failed"] and not counts["error"]):
        shown += [] if run.result.timed_out else [f"exit code {run.result.exit_code}"]
    return ", ".join(shown)


def _failure(outcome: TestOutcome) -> Sequence[str]:
    message = [cut_line(line, 160) for line in outcome.message.splitlines()[:_MESSAGE_LINES]]
    frames = [describe_frame(frame) for frame in shown_frames(outcome.frames)]
    return [f"{_TITLES[outcome.outcome]} {outcome.id}", *(f"  {line}" for line in [*message, *frames])]


def shown_frames(frames: Sequence[DebugFrame]) -> Sequence[DebugFrame]:
    """The first frame, which is the test's, and the innermost ones."""
    return frames if len(frames) <= _FRAMES else [frames[0], *frames[-_FRAMES + 1 :]]

"""`eval`: run the tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pydantic import JsonValue

from gumshoe.protocols import TestRun, Workspace
from gumshoe.records import Decision, Observation, TestOutcome
from gumshoe.tools.base import BaseTool
from gumshoe.tools.text import cut, cut_line

__all__ = ["Eval"]

_DETAILED = 4
_NAMED = 15
_MESSAGE_LINES = 8
_OUTPUT_LIMIT = 1500
_ORDER = ("failed", "error", "passed", "skipped", "xfailed", "xpassed")
_TITLES = {"failed": "FAILED", "error": "ERROR"}


class Eval(BaseTool):
    """Runs the task's entrypoint: counts first, then what failed and where."""

    name = "eval"
    decision = Decision.VERIFY

    def run(self, workspace: Workspace) -> Observation:
        """Run the tests. Shows failures with their innermost frames."""
        run = workspace.run_tests()
        self.board.on_eval(run, workspace)
        return self.observe(describe(run), as_data(run), truncated=run.result.truncated)


def as_data(run: TestRun) -> dict[str, JsonValue]:
    """The run as plain data: counts, outcomes, how the program ended."""
    counts = Counter(outcome.outcome for outcome in run.outcomes)
    return {
        "passed": run.passed,
        "counts": {name: counts[name] for name in _ORDER if counts[name]},
        "outcomes": [outcome.model_dump() for outcome in run.outcomes],
        "exit_code": run.result.exit_code,
        "timed_out": run.result.timed_out,
        "test_duration_s": run.result.duration_s,
    }


def describe(run: TestRun) -> str:
    """What the model reads: one line of counts, then the failures, or the program's output where none is known."""
    lines = [_summary(run)]
    broken = [outcome for outcome in run.outcomes if not outcome.passed and outcome.outcome in _TITLES]
    for outcome in broken[:_DETAILED]:
        lines += _failure(outcome)
    lines += [f"{_TITLES[outcome.outcome]} {outcome.id}" for outcome in broken[_DETAILED:_NAMED]]
    if len(broken) > _NAMED:
        lines.append(f"[... {len(broken) - _NAMED} more failures ...]")
    if not run.outcomes or not (broken or run.passed):
        output, _ = cut(run.result.output.strip(), _OUTPUT_LIMIT)
        lines += [output] if output else []
    return "\n".join(lines)


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
    return [f"{_TITLES[outcome.outcome]} {outcome.id}", *(f"  {line}" for line in message)]

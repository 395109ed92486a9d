"""`trace`: what a function did in the failing tests, call by call, and how that differs from the passing ones.

docs/environment.md lists what is in `Observation.data`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pydantic import JsonValue

from gumshoe.errors import ToolFailure
from gumshoe.protocols import Workspace
from gumshoe.records import Observation
from gumshoe.tools.base import BaseTool
from gumshoe.tools.code.functions import Function, find_function
from gumshoe.tools.runs.commands import Script
from gumshoe.tools.runs.outcomes import describe_end
from gumshoe.tools.runs.trace_comparison import CallComparison, compare, describe_trace, summarize
from gumshoe.tools.runs.traced_calls import Trace, TracedCall, merge, read_trace

_RECORD = "calls.jsonl"
MOST_CALLS = 20
"""The most calls of one side, failing or passing, that are shown and kept in the data."""
_RANKED = 100
_KEPT_STEPS = 600
"""Lines of all calls of one side that are kept in the data."""


class TraceFunction(BaseTool):
    """Runs the tests once and records the calls of one function."""

    name = "trace"

    def run(self, workspace: Workspace, function: str) -> Observation:
        """Show each call of a function in the failing tests, with the values set, and how passing tests differ.

        Args:
            function: NAME, CLASS.NAME, PATH:NAME or PATH:LINE
        """
        chosen = find_function(workspace, function)
        trace = _measure(workspace, chosen)
        trace.failing = merge(sorted(trace.failing, key=lambda call: _telling(call, trace.passing)))[:_RANKED]
        comparisons = [compare(call, trace.passing, chosen.source) for call in trace.failing[:MOST_CALLS]]
        differences = summarize(trace.failing, trace.passing)
        calls = trace.failing or trace.passing
        notes = comparisons if trace.failing else [None] * len(calls)
        text = describe_trace(chosen, trace, calls[:MOST_CALLS], notes[:MOST_CALLS], differences)
        data = _as_data(chosen, trace, comparisons)
        return self.observe(text, {**data, "differences": differences.model_dump(mode="json")})


def _measure(workspace: Workspace, function: Function) -> Trace:
    """Runs the tests under the recorder. Raises ToolFailure where that tells nothing."""
    script = Script(workspace, "trace")
    called = {"path": function.path, "line": function.span.start, "name": function.short_name}
    ran = script.run({"function": called, "record": f"{script.folder}/{_RECORD}"})
    trace = read_trace(script.read(_RECORD))
    if not trace.failed and not trace.passed and not trace.failing:
        why = "they ran too long" if ran.timed_out else ran.output.strip()[-300:] or "no Python program ran them"
        if trace.running:
            why = f"the process {describe_end(ran.exit_code)} in {trace.running}"
        raise ToolFailure("no_trace", f"The tests could not be followed: {why}. Use eval and pdb.")
    return trace


def _telling(call: TracedCall, passing: Sequence[TracedCall]) -> tuple[bool, bool, int]:
    """Sorts the calls that tell most to the front."""
    return any(call.is_like(other) for other in passing), call.outcome == "returned", -call.number


def _as_data(function: Function, trace: Trace, comparisons: Sequence[CallComparison | None]) -> dict[str, JsonValue]:
    """The calls within bounds; the passing ones that comparisons name come first, and are renumbered."""
    named = dict.fromkeys(comparison.passing for comparison in comparisons if comparison is not None)
    order = [*named, *(index for index in range(len(trace.passing)) if index not in named)][:MOST_CALLS]
    renumbered = [
        comparison and comparison.model_copy(update={"passing": order.index(comparison.passing)})
        for comparison in comparisons
    ]
    failing = _within_bounds(trace.failing[:MOST_CALLS])
    return {
        "function": {
            "path": function.path,
            "name": function.span.name,
            "start": function.span.start,
            "end": function.span.end,
        },
        "failed": trace.failed,
        "passed": trace.passed,
        "unfinished": trace.unfinished or not trace.ended,
        "lost": list(trace.lost[:MOST_CALLS]),
        "failing_calls": trace.failing_calls,
        "passing_calls": trace.passing_calls,
        "failing_tests": list(trace.failing_tests[:MOST_CALLS]),
        "failing": [
            {
                **call.model_dump(mode="json"),
                "like_passing": any(original.is_like(other) for other in trace.passing),
                "comparison": comparison.model_dump(mode="json") if comparison else None,
            }
            for call, original, comparison in zip(failing, trace.failing, renumbered, strict=False)
        ],
        "passing": [call.model_dump(mode="json") for call in _within_bounds(trace.passing[index] for index in order)],
    }


def _within_bounds(calls: Iterable[TracedCall]) -> list[TracedCall]:
    """The calls, with steps left out of the middle of those for which there is no room."""
    bounded: list[TracedCall] = []
    room = _KEPT_STEPS
    for call in calls:
        allowed = max(10, min(len(call.steps), room))
        room -= min(len(call.steps), allowed)
        if len(call.steps) > allowed:
            head = allowed - allowed // 4
            kept = [*call.steps[:head], *call.steps[len(call.steps) - allowed // 4 :]]
            skipped = call.skipped + len(call.steps) - len(kept)
            call = call.model_copy(update={"steps": kept, "skipped": skipped})
        bounded.append(call)
    return bounded

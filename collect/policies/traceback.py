"""The heuristic to beat: run the tests, report the last line of the traceback that is in the repository's own code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import JsonValue

from gumshoe.collect.decisions import format_decision, turn_with_call
from gumshoe.collect.tool_output import ToolOutput, tool_outputs
from gumshoe.records import Completion, DebugFrame, Decision, Message, ToolSchema
from gumshoe.tools.inside.gumshoe_project import holds_tests
from gumshoe.tools.tracebacks import describe_frame

__all__ = ["TracebackPolicy", "last_frame"]

NOTHING = "The tests show no traceback."


class TracebackPolicy:
    """Two turns: eval, report. Without a traceback the second turn calls nothing, which ends the episode."""

    kind = "traceback"
    model = ""
    trusted = True

    def complete(self, messages: Sequence[Message], tools: Sequence[ToolSchema]) -> Completion:
        """Runs the tests first, then reports."""
        del tools
        seen = tool_outputs(messages)
        if not seen:
            text = format_decision(Decision.SEEK, None, "I run the tests.")
            return turn_with_call(0, text, "eval")
        arguments = _report(seen[0])
        if arguments is None:
            return Completion(text=format_decision(Decision.REPORT, None, NOTHING))
        text = format_decision(Decision.REPORT, None, "I report the last line of the traceback.")
        return turn_with_call(1, text, "report", arguments)


def last_frame(data: Mapping[str, Any]) -> tuple[DebugFrame, str] | None:
    """The last frame in the data of an `eval`, and words that quote it; frames of tests only if there is no other."""
    failing = [outcome for outcome in data.get("outcomes", ()) if outcome["outcome"] in ("failed", "error")]
    frames = [DebugFrame.model_validate(frame) for outcome in failing for frame in outcome.get("frames", ())]
    found = [(frame, describe_frame(frame)) for frame in frames]
    for printed in data.get("frames", ()):
        frame = DebugFrame.model_validate(printed)
        found.append((frame, frame.code or f"line {frame.line}"))
    own = [pair for pair in found if not holds_tests(pair[0].path)]
    return (own or found or [None])[-1]


def _report(output: ToolOutput) -> dict[str, JsonValue] | None:
    found = last_frame(output.data)
    if found is None:
        return None
    frame, quote = found
    return {
        "locations": [{"path": frame.path, "start": frame.line, "end": frame.line}],
        "findings": [{"claim": "last line of the traceback", "step": output.step, "quote": quote}],
        "hypothesis": f"The traceback ends at {frame.path}:{frame.line}.",
    }

"""The heuristic that only calls `suspects`, and reports the function that comes first."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import JsonValue

from gumshoe.collect.decisions import format_decision, turn_with_call
from gumshoe.collect.tool_output import ToolOutput, tool_outputs
from gumshoe.records import Completion, Decision, Message, ToolSchema
from gumshoe.tools.suspects import describe_suspect, shown_suspects

__all__ = ["SuspectPolicy"]

NOTHING = "Running the tests shows no suspect."


class SuspectPolicy:
    """Two turns: suspects, report. Without a suspect the second turn calls nothing, which ends the episode."""

    kind = "suspect"
    model = ""
    trusted = True

    def complete(self, messages: Sequence[Message], tools: Sequence[ToolSchema]) -> Completion:
        """Calls `suspects` first, then reports the first suspect."""
        del tools
        seen = tool_outputs(messages)
        if not seen:
            text = format_decision(Decision.SEEK, None, "I look for suspects.")
            return turn_with_call(0, text, "suspects")
        arguments = _report(seen[0])
        if arguments is None:
            return Completion(text=format_decision(Decision.REPORT, None, NOTHING))
        text = format_decision(Decision.REPORT, None, "I report the first suspect.")
        return turn_with_call(1, text, "report", arguments)


def _report(output: ToolOutput) -> dict[str, JsonValue] | None:
    suspects = shown_suspects(output.data)
    if not suspects:
        return None
    first = suspects[0]
    return {
        "locations": [{"path": first["path"], "start": first["start"], "end": first["end"]}],
        "findings": [
            {"claim": "most suspicious function", "step": output.step, "quote": describe_suspect(first)},
        ],
        "hypothesis": f"The most suspicious function is in {first['path']}.",
    }

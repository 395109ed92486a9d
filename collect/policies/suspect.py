"""The heuristic that only asks for suspects: run the tests, report the function that `suspects` lists first."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pydantic import JsonValue

from gumshoe.collect.decisions import format_decision
from gumshoe.collect.observed import Observed, observed
from gumshoe.records import Completion, Decision, Message, ToolCall, ToolSchema

__all__ = ["SuspectPolicy"]

_FIRST = re.compile(r"^(?P<start>\d+)-(?P<end>\d+) (?P<path>\S+) \S+ [\d.]+$", re.MULTILINE)


class SuspectPolicy:
    """Two turns: suspects, report."""

    kind = "suspect"
    model = ""
    trusted = True

    def complete(self, messages: Sequence[Message], tools: Sequence[ToolSchema]) -> Completion:
        """Asks for the suspects first, then reports."""
        del tools
        seen = observed(messages)
        if not seen:
            text = format_decision(Decision.SEEK, None, "I ask for the suspects.")
            call = ToolCall(id="call-0", name="suspects")
            return Completion(text=text, tool_calls=(call,), finish_reason="tool_calls")
        call = ToolCall(id="call-1", name="report", arguments=_report(seen[-1]))
        text = format_decision(Decision.REPORT, None, "I report the first suspect.")
        return Completion(text=text, tool_calls=(call,), finish_reason="tool_calls")


def _report(seen: Observed) -> dict[str, JsonValue]:
    first = _FIRST.search(seen.text)
    if first is None:
        return {"locations": [], "findings": [], "hypothesis": "There is no suspect."}
    return {
        "locations": [{"path": first["path"], "start": int(first["start"]), "end": int(first["end"])}],
        "findings": [{"claim": "most suspicious function", "step": seen.step, "quote": first[0]}],
        "hypothesis": f"The most suspicious function is in {first['path']}.",
    }

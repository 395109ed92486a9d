"""The decision line: `[seek 0.8] The test fails in total(); I look at its values there.`

Each turn of an agent opens with its decision, its confidence and the reason. What it does not state is None. Policies
that are programs make their turns here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from pydantic import JsonValue

from gumshoe.records import Completion, Decision, ToolCall

__all__ = ["ParsedDecision", "format_decision", "parse_decision", "turn_with_call"]

DECISION_LINE = re.compile(r"^\[(seek|edit|verify|report|submit)(?: (0?\.\d+|0|1|1\.0))?\]\s*")


@dataclass(frozen=True)
class ParsedDecision:
    """What a turn's text states: decision, confidence (0 to 1) and rationale; None where it does not."""

    decision: Decision | None = None
    confidence: float | None = None
    rationale: str | None = None


def parse_decision(text: str) -> ParsedDecision:
    """Reads the decision line off `text`; all that follows it is the rationale."""
    stripped = text.strip()
    match = DECISION_LINE.match(stripped)
    if match is None:
        return ParsedDecision(rationale=stripped or None)
    confidence = None if match[2] is None else float(match[2])
    return ParsedDecision(Decision(match[1]), confidence, stripped[match.end() :].strip() or None)


def format_decision(decision: Decision, confidence: float | None, rationale: str) -> str:
    """The text that `parse_decision` reads back. `confidence` is rounded to one decimal."""
    sure = "" if confidence is None else f" {confidence:.1f}"
    return f"[{decision.value}{sure}] {rationale}".rstrip()


def turn_with_call(
    turn: int, text: str, tool: str, arguments: Mapping[str, JsonValue] = MappingProxyType({})
) -> Completion:
    """A turn that calls one tool; `turn` counts from 0 and names the call."""
    call = ToolCall(id=f"call-{turn}", name=tool, arguments=dict(arguments))
    return Completion(text=text, tool_calls=(call,), finish_reason="tool_calls")

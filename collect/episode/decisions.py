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
from gumshoe.text import cut_line

__all__ = ["ParsedDecision", "describe_turn", "format_decision", "parse_decision", "turn_with_call"]

MOST_CHARACTERS = 60
"""Of a text that says what a call is about."""
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


def describe_turn(completion: Completion) -> str:
    """The calls of a turn with their places, and the stated confidence: `pdb b shop.py:3, confidence 0.6`."""
    calls = [f"{call.name} {_place(call.arguments)}".rstrip() for call in completion.tool_calls] or ["no call"]
    confidence = parse_decision(completion.text).confidence
    text = ", ".join(calls if confidence is None else [*calls, f"confidence {confidence:.1f}"])
    return "".join(character if character.isprintable() else "?" for character in text)


def _place(arguments: Mapping[str, JsonValue]) -> str:
    """What a call is about: `path:line`, in the first of several changes or locations, or its first text."""
    listed = next((value for value in arguments.values() if isinstance(value, list) and value), [])
    for part in (arguments, *listed[:1]):
        if isinstance(part, Mapping) and "path" in part:
            line = part.get("line", part.get("start"))
            more = f" and {len(listed) - 1} more" if len(listed) > 1 else ""
            return f"{part['path']}{'' if line is None else f':{line}'}{more}"
    text = next((value for value in arguments.values() if isinstance(value, str) and value.strip()), "")
    return cut_line(text.strip().partition("\n")[0], MOST_CHARACTERS)

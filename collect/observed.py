"""What the conversation has shown so far: tool messages of the form `[step N] text`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from gumshoe.records import Message

__all__ = ["Observed", "observed", "tool_message"]

STEP = re.compile(r"\A\[step (\d+)\] ")


@dataclass(frozen=True)
class Observed:
    """One answer of a tool: the index of its step, the tool, what it said."""

    step: int
    tool: str
    text: str


def tool_message(step: int, text: str, *, call_id: str, tool: str) -> Message:
    """The message that answers a call."""
    return Message(role="tool", content=f"[step {step}] {text}", tool_call_id=call_id, name=tool)


def observed(messages: Sequence[Message]) -> list[Observed]:
    """Every answer in the conversation, in order."""
    found: list[Observed] = []
    for message in messages:
        match = STEP.match(message.content) if message.role == "tool" else None
        if match is not None:
            found.append(Observed(int(match[1]), message.name or "", message.content[match.end() :]))
    return found

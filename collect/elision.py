"""What an agent with a limited context is shown: the conversation without its oldest observations.

The trajectory keeps every message whole. A step records one number, the position before which tool messages were
shown without their text, so that what the agent saw can be reconstructed exactly.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from gumshoe.records import Message, ToolSchema

__all__ = ["boundary", "shown"]

CHARACTERS_A_TOKEN = 4
KEEP_TURNS = 2
"""This many of the latest turns are always shown whole."""
_STEP = re.compile(r"\A\[step \d+\] ")


def shown(messages: Sequence[Message], before: int) -> list[Message]:
    """The conversation as the agent sees it: tool messages at positions below `before` without their text."""
    return [_elided(message) if index < before else message for index, message in enumerate(messages)]


def boundary(messages: Sequence[Message], tools: Sequence[ToolSchema], budget: int, current: int) -> int:
    """The position before which to elide, for the coming turn.

    It stays where it is while the conversation fits, so that the prefix stays the same and caches stay warm. Once the
    conversation no longer fits, the position moves on until at most half of the budget is used, or to the latest turns.

    Args:
        messages: the whole conversation.
        tools: the tools that are offered, which take up room as well.
        budget: tokens, at four characters each.
        current: the position so far.
    """
    fixed = sum(len(tool.model_dump_json()) for tool in tools)
    room = budget * CHARACTERS_A_TOKEN - fixed
    if _size(shown(messages, current)) <= room:
        return current
    turns = [index for index, message in enumerate(messages) if message.role == "assistant"]
    last = turns[-KEEP_TURNS] if len(turns) >= KEEP_TURNS else 0
    for position in [turn for turn in turns if current < turn < last]:
        if _size(shown(messages, position)) <= room // 2:
            return position
    return max(current, last)


def _elided(message: Message) -> Message:
    if message.role != "tool":
        return message
    head = _STEP.match(message.content)
    prefix = head[0] if head else ""
    text = f"{prefix}[left out: {len(message.content) - len(prefix)} characters]"
    return (
        message.model_copy(update={"content": text, "observation": None})
        if len(text) < len(message.content)
        else message
    )


def _size(messages: Sequence[Message]) -> int:
    return sum(
        len(message.content) + sum(len(call.model_dump_json()) for call in message.tool_calls) for message in messages
    )

"""Conversations longer than the context size, cut into windows that each train whole turns.

Every turn trains in exactly one window, the report included. A window ends after an assistant message, never inside
one. The turns that it trains are preceded by what led to them, with the text of older observations left out, just as an
agent with a limited context sees it; if that is still too long, the oldest turns are dropped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gumshoe.train.masked_turns import turns_of

__all__ = ["Window", "windows"]

KEEP_TURNS = 2
"""This many turns before those that train are shown whole, if there is room."""

_STEP = re.compile(r"\A\[step \d+\] ")

Message = Mapping[str, Any]


@dataclass(frozen=True)
class Window:
    """A part of an episode: its messages, and the positions among them of the turns that train.

    `origins` are the positions that these turns had in the episode.
    """

    messages: Sequence[Message]
    trains: tuple[int, ...]
    origins: tuple[int, ...]


def windows(
    messages: Sequence[Message], fits: Callable[[Sequence[Message]], bool], *, single: bool = False
) -> list[Window] | None:
    """The windows of a conversation; a single whole one if it fits. None if a turn cannot be made to fit.

    Args:
        messages: the conversation.
        fits: whether these messages fit in one row.
        single: one window per turn, instead of as many turns as fit.
    """
    turns = turns_of(messages)
    if not turns or (not single and fits(messages)):
        return [Window(list(messages), tuple(turns), tuple(turns))]
    found: list[Window] = []
    start = 0
    while start < len(turns):
        context = _context(messages, turns, start, fits)
        if context is None:
            return None
        shift = turns[start] - len(context)

        def upto(end: int, context: list[Message] = context, begin: int = turns[start]) -> list[Message]:
            return [*context, *messages[begin : turns[end - 1] + 1]]

        end = start + 1 if single else _furthest(start + 1, len(turns), lambda end: fits(upto(end)))
        origins = tuple(turns[start:end])
        found.append(Window(upto(end), tuple(turn - shift for turn in origins), origins))
        start = end
    return found


def _context(
    messages: Sequence[Message], turns: Sequence[int], start: int, fits: Callable[[Sequence[Message]], bool]
) -> list[Message] | None:
    """As much of what precedes turn `start` as leaves room for the turn; None if nothing does."""
    turn = messages[turns[start]]
    whole = list(messages[: turns[start]])
    if fits([*whole, turn]):
        return whole
    for kept in range(min(KEEP_TURNS, start), -1, -1):
        shown = [_left_out(message) if at < turns[start - kept] else message for at, message in enumerate(whole)]
        if fits([*shown, turn]):
            return shown
    head = list(messages[: turns[0]])
    for dropped in range(1, start + 1):
        rest = [_left_out(message) for message in whole[turns[dropped] :]]
        if fits([*head, *rest, turn]):
            return [*head, *rest]
    return None


def _furthest(low: int, high: int, fits: Callable[[int], bool]) -> int:
    """The largest of low..high that fits, where `low` is known to."""
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def _left_out(message: Message) -> Message:
    """A tool message without its text, replaced by the text that the agent sees instead."""
    if message["role"] != "tool":
        return message
    content = str(message.get("content") or "")
    head = _STEP.match(content)
    prefix = head[0] if head else ""
    text = f"{prefix}[left out: {len(content) - len(prefix)} characters]"
    return {**message, "content": text} if len(text) < len(content) else message

"""From the events of a streamed answer of Anthropic's Messages API to the answer that they make up."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gumshoe.collect.policies.answers import Sent, read_events, read_json, validated
from gumshoe.collect.policies.anthropic_chat import MessageAnswer
from gumshoe.collect.policies.retry import Transient

__all__ = ["read_message_stream"]

PIECES = ("text", "thinking", "signature", "partial_json")
MAX_BLOCKS = 10_000


class _Event(Sent):
    type: str
    index: int | None = None
    message: dict[str, Any] | None = None
    content_block: dict[str, Any] | None = None
    delta: dict[str, Any] | None = None
    usage: dict[str, Any] | None = None
    error: Any = None


def read_message_stream(lines: Iterable[str]) -> MessageAnswer:
    """One answer from the lines of a stream of server-sent events. Raises Transient where it breaks or ends early."""
    head: dict[str, Any] = {}
    blocks: dict[int, dict[str, Any]] = {}
    for value in read_events(lines):
        event = validated(_Event, value)
        match event.type:
            case "message_start":
                head |= event.message or {}
            case "content_block_start":
                blocks[_place(event)] = dict(event.content_block or {})
            case "content_block_delta":
                _add(blocks, event)
            case "message_delta":
                head |= {"stop_reason": (event.delta or {}).get("stop_reason")}
                head["usage"] = _joined(head.get("usage"), event.usage)
            case "error":
                raise Transient(f"the stream broke: {event.error}")
            case _:
                continue
    if head.get("stop_reason") is None:
        raise Transient("the stream ended before the answer was complete")
    content = [_whole(blocks[index]) for index in sorted(blocks)]
    return validated(MessageAnswer, {**head, "content": content})


def _place(event: _Event) -> int:
    if event.index is None or not 0 <= event.index < MAX_BLOCKS:
        raise Transient("the stream broke: a piece without a block")
    return event.index


def _add(blocks: dict[int, dict[str, Any]], event: _Event) -> None:
    block = blocks.get(_place(event))
    if block is None:
        raise Transient("the stream broke: a piece of a block that was never started")
    for name in PIECES:
        piece = (event.delta or {}).get(name)
        if isinstance(piece, str):
            so_far = block.get(name)
            block[name] = (so_far if isinstance(so_far, str) else "") + piece


def _whole(block: dict[str, Any]) -> dict[str, Any]:
    """The block with the arguments of a call read from their pieces."""
    text = block.pop("partial_json", None)
    if isinstance(text, str) and text.strip():
        block["input"] = read_json(text)
    return block


def _joined(first: Any, later: dict[str, Any] | None) -> dict[str, Any]:
    """Usage as stated at the beginning, updated with what is stated at the end."""
    known = {name: count for name, count in (later or {}).items() if count is not None}
    return {**(first if isinstance(first, dict) else {}), **known}

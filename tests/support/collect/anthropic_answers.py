"""Answers of the local provider in the form of Anthropic's Messages API."""

from __future__ import annotations

import json
from typing import Any

from support.provider_server import Answer, Handler

__all__ = ["call", "events", "message", "refusal", "said", "stream", "text", "thinking"]

USAGE = {
    "input_tokens": 30,
    "cache_read_input_tokens": 60,
    "cache_creation_input_tokens": 10,
    "output_tokens": 10,
}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def call(name: str, arguments: Any, ident: str = "toolu_1") -> dict[str, Any]:
    return {"type": "tool_use", "id": ident, "name": name, "input": arguments}


def thinking(words: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": words, "signature": "signed"}


def said(*blocks: dict[str, Any], stop: str | None = None) -> Answer:
    """A whole message."""

    def answer(handler: Handler, body: dict[str, Any]) -> None:
        handler.reply(200, json.dumps(message(body, list(blocks), stop or _stop(blocks))).encode())

    return answer


def refusal(status: int, message: str, kind: str = "invalid_request_error", **headers: str) -> Answer:
    """An error as the API shapes it."""

    def answer(handler: Handler, body: dict[str, Any]) -> None:
        del body
        told = {"type": "error", "error": {"type": kind, "message": message}}
        handler.reply(status, json.dumps(told).encode(), **headers)

    return answer


def stream(*blocks: dict[str, Any], stop: str | None = None, pieces: int = 3, until: int | None = None) -> Answer:
    """The message as server-sent events, calls and texts in `pieces`; only the first `until` events."""

    def answer(handler: Handler, body: dict[str, Any]) -> None:
        found = events(body, blocks, stop or _stop(blocks), pieces)[:until]
        body_text = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in found)
        handler.reply(200, body_text.encode(), "text/event-stream")

    return answer


def events(body: dict[str, Any], blocks: tuple[dict[str, Any], ...], stop: str, pieces: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [{"type": "message_start", "message": message(body, [], None)}]
    for index, block in enumerate(blocks):
        name, words = {
            "text": ("text", block.get("text")),
            "thinking": ("thinking", block.get("thinking")),
            "tool_use": ("partial_json", json.dumps(block.get("input"))),
        }[block["type"]]
        kind = {"text": "text_delta", "thinking": "thinking_delta", "partial_json": "input_json_delta"}[name]
        empty = {**block, **({"input": {}} if name == "partial_json" else {name: ""})}
        found.append({"type": "content_block_start", "index": index, "content_block": empty})
        for piece in _cut(str(words), pieces):
            found.append({"type": "content_block_delta", "index": index, "delta": {"type": kind, name: piece}})
        found.append({"type": "content_block_stop", "index": index})
    delta = {"stop_reason": stop, "stop_sequence": None}
    found.append({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 10}})
    return [*found, {"type": "message_stop"}]


def _cut(words: str, pieces: int) -> list[str]:
    size = max(1, -(-len(words) // pieces))
    return [words[start : start + size] for start in range(0, len(words), size)]


def _stop(blocks: tuple[dict[str, Any], ...]) -> str:
    return "tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn"


def message(body: dict[str, Any], blocks: list[dict[str, Any]], stop: str | None) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": blocks,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": USAGE,
    }

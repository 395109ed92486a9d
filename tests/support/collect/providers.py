"""Policies that ask the local provider, and its answers in the form of Anthropic's Messages API."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

from gumshoe.collect.config import AnthropicConfig, OpenAIConfig, RetryConfig
from gumshoe.collect.policies.providers.anthropic import AnthropicPolicy
from gumshoe.collect.policies.providers.openai import OpenAIPolicy
from gumshoe.records import Completion, Message, ToolSchema
from support.collect.small_trajectories import OPENING
from support.provider_server import Answer, Handler, Provider, provider

KEY = "sk-planted-0123456789abcdef"
TOOLS = [ToolSchema(name="view", description="Show.", parameters={"type": "object", "properties": {}})]

USAGE = {
    "input_tokens": 30,
    "cache_read_input_tokens": 60,
    "cache_creation_input_tokens": 10,
    "output_tokens": 10,
}


def policy_of(
    kind: str, server: Provider, pause: Callable[[float], None] = lambda _: None, **settings: Any
) -> OpenAIPolicy | AnthropicPolicy:
    """The policy for a kind of provider, with `KEY` as its key."""
    given: dict[str, Any] = {"model": "m", "retry": RetryConfig(attempts=4), **settings}
    if kind == "openai":
        config = OpenAIConfig(base_url=server.url, **given)
        return OpenAIPolicy(config, seed=3, environ={config.api_key_env: KEY}, pause=pause)
    anthropic = AnthropicConfig(base_url=server.url.removesuffix("/v1"), **given)
    return AnthropicPolicy(anthropic, seed=3, environ={anthropic.api_key_env: KEY}, pause=pause)


def ask(
    kind: str,
    *answers: Answer,
    messages: Sequence[Message] = OPENING,
    tools: Sequence[ToolSchema] = TOOLS,
    **settings: Any,
) -> tuple[Completion, Provider]:
    """One completion, and the server that was asked."""
    with provider(*answers) as server, closing(policy_of(kind, server, **settings)) as policy:
        return policy.complete(messages, tools), server


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


def refusal(status: int, message: str, kind: str = "invalid_request_error") -> Answer:
    """An error as the API shapes it."""

    def answer(handler: Handler, body: dict[str, Any]) -> None:
        del body
        handler.reply(status, json.dumps({"type": "error", "error": {"type": kind, "message": message}}).encode())

    return answer


def stream(*blocks: dict[str, Any], until: int | None = None) -> Answer:
    """The message as server-sent events; only the first `until` of them."""

    def answer(handler: Handler, body: dict[str, Any]) -> None:
        found = events(body, blocks)[:until]
        body_text = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in found)
        handler.reply(200, body_text.encode(), "text/event-stream")

    return answer


def events(body: dict[str, Any], blocks: tuple[dict[str, Any], ...]) -> list[dict[str, Any]]:
    """The message in pieces, texts and calls in three each."""
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
        third = len(str(words)) // 3
        for piece in (str(words)[:third], str(words)[third : 2 * third], str(words)[2 * third :]):
            found.append({"type": "content_block_delta", "index": index, "delta": {"type": kind, name: piece}})
        found.append({"type": "content_block_stop", "index": index})
    delta = {"stop_reason": _stop(blocks), "stop_sequence": None}
    found.append({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 10}})
    return [*found, {"type": "message_stop"}]


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

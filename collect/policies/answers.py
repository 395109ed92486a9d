"""From the chat API's answers to `Completion` records."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Literal

import openai
from openai.types.chat import ChatCompletion, ChatCompletionChunk, ChatCompletionMessageFunctionToolCall

from gumshoe.collect.config import Prices
from gumshoe.collect.policies.retry import Transient
from gumshoe.records import Completion, ToolCall, Usage
from gumshoe.tools.text import clean
from gumshoe.tools.text_calls import parse_native, split_text_calls

__all__ = ["merge_stream", "read_answer"]

THINK_END = "</think>"


def read_answer(
    answer: ChatCompletion, *, model: str, duration_s: float, prices: Prices | None, call_prefix: str
) -> Completion:
    """The completion that a server's answer holds.

    Calls are read from the native field, or from Hermes text where the server left them in the content. Reasoning
    is taken from `reasoning_content` or `reasoning`, or from a leading `<think>` block.
    """
    choice = answer.choices[0]
    content, thought = _split_thought(clean(choice.message.content or ""))
    calls = _native_calls(answer, call_prefix)
    if not calls:
        content, calls = split_text_calls(content, prefix=call_prefix)
    extra = choice.message.model_extra or {}
    reasoning = extra.get("reasoning_content") or extra.get("reasoning") or thought
    return Completion(
        text=content,
        reasoning=clean(reasoning) if isinstance(reasoning, str) else None,
        tool_calls=calls,
        finish_reason=_finish_reason(choice.finish_reason, calls),
        usage=_usage(answer, duration_s, prices),
        model=model,
    )


def merge_stream(chunks: Iterable[ChatCompletionChunk]) -> ChatCompletion:
    """One answer from a stream of pieces. Raises Transient where the stream breaks or ends early."""
    merged: dict[str, Any] = {"role": "assistant", "content": ""}
    calls: dict[int, dict[str, Any]] = {}
    head: dict[str, Any] = {}
    usage: Any = None
    finish: str | None = None
    try:
        for chunk in chunks:
            head = head or {"id": chunk.id, "created": chunk.created, "model": chunk.model}
            usage = chunk.usage or usage
            for choice in chunk.choices[:1]:
                finish = choice.finish_reason or finish
                _add_delta(merged, calls, choice.delta.model_dump(exclude_none=True))
    except (openai.APIConnectionError, openai.APIError, json.JSONDecodeError, UnicodeDecodeError) as error:
        raise Transient(f"the stream broke: {error}") from None
    if finish is None:
        raise Transient("the stream ended before its answer did")
    if calls:
        merged["tool_calls"] = [calls[index] for index in sorted(calls)]
    choice_data = {"index": 0, "finish_reason": finish, "message": merged, "logprobs": None}
    body = {**head, "object": "chat.completion", "choices": [choice_data]}
    return ChatCompletion.model_validate(body | ({"usage": usage.model_dump()} if usage else {}))


def _add_delta(merged: dict[str, Any], calls: dict[int, dict[str, Any]], delta: dict[str, Any]) -> None:
    for name in ("content", "reasoning_content", "reasoning"):
        if isinstance(delta.get(name), str):
            merged[name] = merged.get(name, "") + delta[name]
    for piece in delta.get("tool_calls", ()):
        call = calls.setdefault(
            piece["index"], {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
        )
        call["id"] = call["id"] or piece.get("id", "")
        for name in ("name", "arguments"):
            call["function"][name] += piece.get("function", {}).get(name, "")


def _native_calls(answer: ChatCompletion, prefix: str) -> tuple[ToolCall, ...]:
    return tuple(
        parse_native(call.id or f"{prefix}-{number}", call.function.name, call.function.arguments)
        for number, call in enumerate(answer.choices[0].message.tool_calls or ())
        if isinstance(call, ChatCompletionMessageFunctionToolCall)
    )


def _split_thought(content: str) -> tuple[str, str | None]:
    head, end, tail = content.partition(THINK_END)
    if not end:
        return content, None
    return tail.lstrip("\n"), head.strip().removeprefix("<think>").strip() or None


def _finish_reason(
    reason: str | None, calls: tuple[ToolCall, ...]
) -> Literal["stop", "length", "tool_calls", "content_filter"]:
    if reason == "length":
        return "length"
    if reason == "content_filter":
        return "content_filter"
    return "tool_calls" if calls else "stop"


def _usage(answer: ChatCompletion, duration_s: float, prices: Prices | None) -> Usage:
    if answer.usage is None:
        return Usage(duration_s=duration_s)
    details = answer.usage.prompt_tokens_details
    usage = Usage(
        prompt_tokens=answer.usage.prompt_tokens or 0,
        completion_tokens=answer.usage.completion_tokens or 0,
        cached_tokens=(details.cached_tokens or 0) if details else 0,
        duration_s=duration_s,
    )
    return usage if prices is None else usage.model_copy(update={"cost_usd": prices.cost(usage)})

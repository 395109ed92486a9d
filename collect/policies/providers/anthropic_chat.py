"""The conversation in the form of Anthropic's Messages API, and its answers as `Completion` records."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

from anthropic.types import Message as Answer

from gumshoe.collect.policies.providers.answers import priced, reading
from gumshoe.collect.policy_config import Prices
from gumshoe.records import Completion, Message, ToolSchema, Usage
from gumshoe.surrogates import clean
from gumshoe.tools.text_calls import parse_native, split_text_calls

__all__ = ["as_blocks", "as_tool", "read_message", "thoughts_of"]

Blocks = list[dict[str, Any]]
FINISH: dict[str, Literal["stop", "length", "tool_calls", "content_filter"]] = {
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "refusal": "content_filter",
}
_FORBIDDEN = re.compile(r"[^a-zA-Z0-9_-]")


def as_blocks(messages: Sequence[Message], thoughts: Mapping[int, Blocks]) -> tuple[str, list[dict[str, Any]]]:
    """The system text, and the turns, which alternate between user and assistant.

    The last block of the last turn is marked for the provider's cache: the history only ever grows.

    Args:
        messages: the conversation.
        thoughts: by turn, the blocks of thinking that the answer came with; the API wants them back unchanged.
    """
    system = "\n\n".join(message.content for message in messages if message.role == "system")
    turns: list[dict[str, Any]] = []
    answered = 0
    for message in messages:
        if message.role == "system":
            continue
        role = "assistant" if message.role == "assistant" else "user"
        blocks = _blocks(message)
        if role == "assistant":
            blocks = [*thoughts.get(answered, []), *blocks]
            answered += 1
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        elif blocks:
            turns.append({"role": role, "content": blocks})
    if turns and turns[-1]["content"]:
        turns[-1]["content"][-1]["cache_control"] = {"type": "ephemeral"}
    return system, turns


def as_tool(schema: ToolSchema) -> dict[str, Any]:
    """A tool as the API wants it."""
    return {"name": schema.name, "description": schema.description, "input_schema": schema.parameters}


def read_message(
    answer: Answer,
    *,
    model: str,
    duration_s: float,
    prices: Prices | None,
    call_prefix: str,
    offered: Collection[str] = (),
) -> Completion:
    """The completion that an answer holds; calls left in the text are read from there, as for `split_text_calls`.

    Raises Transient if the answer does not fit the API.
    """
    with reading():
        text = clean("".join(block.text for block in answer.content if block.type == "text"))
        thought = "\n".join(block.thinking for block in answer.content if block.type == "thinking")
        calls = tuple(
            parse_native(clean(block.id), clean(block.name), block.input)
            for block in answer.content
            if block.type == "tool_use"
        )
        if not calls:
            text, calls = split_text_calls(text, prefix=call_prefix, offered=offered)
        reason = FINISH.get(answer.stop_reason or "", "stop")
        return Completion(
            text=text.strip(),
            reasoning=clean(thought) or None,
            tool_calls=calls,
            finish_reason="tool_calls" if calls and reason == "stop" else reason,
            usage=_usage(answer, duration_s, prices),
            model=clean(answer.model or model),
        )


def thoughts_of(answer: Answer) -> Blocks:
    """The blocks of thinking, as they must be sent back."""
    with reading():
        return [block.to_dict(warnings=False) for block in answer.content if "thinking" in block.type]


def _blocks(message: Message) -> Blocks:
    if message.role == "tool":
        content: Blocks = [{"type": "text", "text": message.content}]
        return [{"type": "tool_result", "tool_use_id": _ident(message.tool_call_id or ""), "content": content}]
    # The API refuses a text that is nothing but white space.
    text: Blocks = [{"type": "text", "text": message.content}] if message.content.strip() else []
    calls: Blocks = [
        {"type": "tool_use", "id": _ident(call.id), "name": call.name or "unknown", "input": call.arguments}
        for call in message.tool_calls
    ]
    return text + calls


def _ident(call_id: str) -> str:
    return _FORBIDDEN.sub("_", call_id)


def _usage(answer: Answer, duration_s: float, prices: Prices | None) -> Usage:
    """Tokens and cost: what the API calls input excludes what was read from its cache or written to it."""
    cached = answer.usage.cache_read_input_tokens or 0
    written = answer.usage.cache_creation_input_tokens or 0
    usage = Usage(
        prompt_tokens=answer.usage.input_tokens + cached + written,
        completion_tokens=answer.usage.output_tokens,
        cached_tokens=cached,
        duration_s=duration_s,
    )
    return priced(usage, prices)

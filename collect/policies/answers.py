"""From the chat API's answers, whole or in pieces, to `Completion` records.

What a server sends is checked against a schema: unknown fields are ignored, anything else that does not fit raises
`Transient`, so that it is tried again and then recorded as a failure of the policy.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from gumshoe.collect.chat import split_thought
from gumshoe.collect.policies.retry import Transient
from gumshoe.collect.policy_config import Prices
from gumshoe.records import Completion, ToolCall, Usage
from gumshoe.storage import describe, parse_json
from gumshoe.surrogates import clean
from gumshoe.tools.text_calls import parse_native, split_text_calls

__all__ = [
    "ChatAnswer",
    "Count",
    "Sent",
    "read_answer",
    "read_events",
    "read_json",
    "read_stream",
    "read_whole",
    "validated",
]

MAX_COUNT = 2**53
"""Largest integer that JSON carries unchanged everywhere (RFC 8259, section 6)."""

Count = Annotated[int, Field(ge=0, le=MAX_COUNT)]
M = TypeVar("M", bound="Sent")


class Sent(BaseModel):
    """Base of what servers send."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class _Part(Sent):
    type: str = "text"
    text: str | None = None


class _Function(Sent):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class _Call(Sent):
    id: str | None = None
    type: str | None = None
    index: int | None = None
    function: _Function | None = None

    @model_validator(mode="after")
    def _has_function(self) -> _Call:
        if self.type in {None, "function"} and self.function is None:
            raise ValueError("a call without a function")
        return self


class _Message(Sent):
    content: str | list[_Part] | None = None
    reasoning_content: Any = None
    reasoning: Any = None
    tool_calls: list[_Call] | None = None


class _Logprob(Sent):
    logprob: float


class _Logprobs(Sent):
    content: list[_Logprob] | None = None


class _Sampled(Sent):
    """What a choice says about its tokens, if that was asked for: their ids as vLLM gives them, and the API's own log
    probabilities.
    """

    token_ids: list[Count] | None = None
    logprobs: _Logprobs | None = None


class _Choice(_Sampled):
    message: _Message
    finish_reason: str | None = None


class _Details(Sent):
    cached_tokens: Count | None = None


class _Usage(Sent):
    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None
    prompt_tokens_details: _Details | None = None


class ChatAnswer(Sent):
    """A chat completion, as far as it is used."""

    model: str | None = None
    choices: Annotated[list[_Choice], Field(min_length=1)]
    usage: _Usage | None = None


class _DeltaChoice(_Sampled):
    delta: _Message | None = None
    finish_reason: str | None = None


class _Chunk(Sent):
    model: str | None = None
    choices: list[_DeltaChoice] | None = None
    usage: _Usage | None = None
    error: Any = None


def read_json(data: bytes | str) -> Any:
    """Any JSON value. Raises Transient if it is incomplete or nested too deeply."""
    try:
        return parse_json(data)
    except ValueError as error:
        raise Transient(f"the answer is not complete JSON: {error}") from None


def validated(schema: type[M], value: Any) -> M:
    """`value` as a record of the schema. Raises Transient where it does not fit."""
    try:
        return schema.model_validate(value)
    except ValidationError as error:
        raise Transient(f"the answer does not fit the API: {describe(error)}") from None


def read_events(lines: Iterable[str]) -> Iterator[Any]:
    """The JSON values of a stream of server-sent events, one per `data` line. Raises Transient."""
    for line in lines:
        kind, _, data = line.partition(":")
        if kind == "data" and data.strip() != "[DONE]":
            yield read_json(data)


def read_whole(data: bytes) -> ChatAnswer:
    """The answer in a response's body. Raises Transient."""
    return validated(ChatAnswer, read_json(data))


def read_stream(lines: Iterable[str]) -> ChatAnswer:
    """One answer from the lines of a stream of server-sent events. Raises Transient where it breaks or ends early."""
    texts: dict[str, str] = {"content": ""}
    calls: dict[int, dict[str, Any]] = {}
    model: str | None = None
    usage: _Usage | None = None
    finish: str | None = None
    ids: list[int] = []
    logprobs: list[_Logprob] = []
    for event in read_events(lines):
        chunk = validated(_Chunk, event)
        if chunk.error is not None:
            raise Transient(f"the stream broke: {_reason(chunk.error)}")
        model, usage = chunk.model or model, chunk.usage or usage
        for choice in (chunk.choices or ())[:1]:
            finish = choice.finish_reason or finish
            ids += choice.token_ids or ()
            logprobs += (choice.logprobs and choice.logprobs.content) or ()
            if choice.delta is not None:
                _add_delta(texts, calls, choice.delta)
    if finish is None:
        raise Transient("the stream ended before the answer was complete")
    message = {**texts, "tool_calls": [calls[index] for index in sorted(calls)] or None}
    tokens = {"token_ids": ids or None, "logprobs": {"content": logprobs} if logprobs else None}
    merged = {"model": model, "choices": [{"message": message, "finish_reason": finish, **tokens}]}
    return validated(ChatAnswer, merged).model_copy(update={"usage": usage})


def read_answer(
    answer: ChatAnswer,
    *,
    model: str,
    duration_s: float,
    prices: Prices | None,
    call_prefix: str,
    offered: Collection[str] = (),
) -> Completion:
    """The completion that a server's answer holds.

    Calls are read from the native field, or from the content if the server left them there; `offered` are the names of
    the tools that a call without tags may name. Reasoning is taken from `reasoning_content` or `reasoning`, or from a
    leading `<think>` block.
    """
    choice = answer.choices[0]
    message = choice.message
    content, thought = split_thought(clean(_text(message)))
    calls = _native_calls(message, call_prefix)
    if calls:
        # vLLM leaves the line break before a call in the content. Sent back, the template would add another one.
        content = content.strip()
    else:
        content, calls = split_text_calls(content, prefix=call_prefix, offered=offered)
    reasoning = message.reasoning_content or message.reasoning or thought
    return Completion(
        text=content,
        reasoning=clean(reasoning) if isinstance(reasoning, str) else None,
        tool_calls=calls,
        finish_reason=_finish_reason(choice.finish_reason, calls),
        usage=_usage(answer.usage, duration_s, prices),
        model=clean(model),
        token_ids=None if choice.token_ids is None else tuple(choice.token_ids),
        logprobs=_logprobs(choice),
    )


def _logprobs(choice: _Choice) -> tuple[float, ...] | None:
    """One for each token, or none at all: if there are ids and their number differs, they belong to other tokens."""
    if choice.logprobs is None or choice.logprobs.content is None:
        return None
    found = tuple(entry.logprob for entry in choice.logprobs.content)
    return found if choice.token_ids is None or len(found) == len(choice.token_ids) else None


def _add_delta(texts: dict[str, str], calls: dict[int, dict[str, Any]], delta: _Message) -> None:
    texts["content"] += _text(delta)
    for name in ("reasoning_content", "reasoning"):
        piece = getattr(delta, name)
        if isinstance(piece, str):
            texts[name] = texts.get(name, "") + piece
    for position, piece in enumerate(delta.tool_calls or ()):
        index = position if piece.index is None else piece.index
        call = calls.setdefault(index, {"id": "", "function": {"name": "", "arguments": ""}})
        call["id"] = call["id"] or piece.id or ""
        if piece.function is not None:
            given = piece.function.arguments
            call["function"]["name"] += piece.function.name or ""
            call["function"]["arguments"] += given if isinstance(given, str) else json.dumps(given) if given else ""


def _reason(error: Any) -> str:
    told = error.get("message") if isinstance(error, Mapping) else None
    return str(told or error)


def _text(message: _Message) -> str:
    if isinstance(message.content, list):
        return "".join(part.text or "" for part in message.content if part.type in {"text", "output_text"})
    return message.content or ""


def _native_calls(message: _Message, prefix: str) -> tuple[ToolCall, ...]:
    return tuple(
        parse_native(
            clean(call.id or "") or f"{prefix}-{number}", clean(call.function.name or ""), call.function.arguments
        )
        for number, call in enumerate(message.tool_calls or ())
        if call.function is not None
    )


def _finish_reason(
    reason: str | None, calls: tuple[ToolCall, ...]
) -> Literal["stop", "length", "tool_calls", "content_filter"]:
    """The reason in our words; one that no API names counts as an ordinary end."""
    if reason == "length":
        return "length"
    if reason == "content_filter":
        return "content_filter"
    return "tool_calls" if calls else "stop"


def _usage(sent: _Usage | None, duration_s: float, prices: Prices | None) -> Usage:
    if sent is None:
        return Usage(duration_s=duration_s)
    usage = Usage(
        prompt_tokens=sent.prompt_tokens or 0,
        completion_tokens=sent.completion_tokens or 0,
        cached_tokens=(sent.prompt_tokens_details and sent.prompt_tokens_details.cached_tokens) or 0,
        duration_s=duration_s,
    )
    return usage if prices is None else usage.model_copy(update={"cost_usd": prices.cost(usage)})

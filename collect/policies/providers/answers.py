"""From the chat API's answers, whole or in pieces, to `Completion` records.

The SDK does not check what a server sends against its types. Whatever does not fit raises `Transient`, so that it is
tried again and then recorded as a failure of the policy.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.completion_usage import CompletionUsage

from gumshoe.collect.episode.conversation import split_thought
from gumshoe.collect.policies.providers.retry import Transient
from gumshoe.collect.policy_config import Prices
from gumshoe.records import Completion, ToolCall, Usage
from gumshoe.surrogates import clean
from gumshoe.tools.text_calls import parse_native, split_text_calls

__all__ = ["ChatAnswer", "priced", "read_answer", "read_stream", "read_whole", "reading"]


@contextmanager
def reading() -> Generator[None]:
    """Raises what a value of the wrong type makes the block raise as Transient."""
    try:
        yield
    except (AssertionError, AttributeError, LookupError, OverflowError, RuntimeError, TypeError, ValueError) as error:
        raise Transient(f"the answer does not fit the API: {type(error).__name__}: {error}") from None


@dataclass
class ChatAnswer:
    """One choice of a chat completion, put together from its message or from the pieces of a stream.

    `calls` are [id, name, arguments as JSON text] by their index.
    """

    model: str | None = None
    text: str = ""
    reasoning: str = ""
    calls: dict[int, list[str]] = field(default_factory=dict[int, list[str]])
    finish: str | None = None
    usage: CompletionUsage | None = None
    token_ids: list[int] = field(default_factory=list[int])
    logprobs: list[float] = field(default_factory=list[float])

    def add(self, choice: Any, message: Any) -> None:
        """Adds a choice with its message or, in a stream, its delta."""
        self.finish = choice.finish_reason or self.finish
        self.text += _text(message.content)
        thoughts = (getattr(message, name, None) for name in ("reasoning_content", "reasoning"))
        self.reasoning += next((thought for thought in thoughts if isinstance(thought, str)), "")
        for position, call in enumerate(message.tool_calls or ()):
            index = getattr(call, "index", None)
            parts = self.calls.setdefault(position if index is None else index, ["", "", ""])
            parts[0] = parts[0] or call.id or ""
            if call.function is not None:
                given = call.function.arguments
                parts[1] += call.function.name or ""
                parts[2] += given if isinstance(given, str) else json.dumps(given) if given else ""
        # vLLM's name for what was sampled; the log probabilities are the API's own.
        self.token_ids += getattr(choice, "token_ids", None) or ()
        self.logprobs += [entry.logprob for entry in (choice.logprobs and choice.logprobs.content) or ()]


def read_whole(answer: ChatCompletion) -> ChatAnswer:
    """An answer that came in one piece. Raises Transient."""
    with reading():
        read = ChatAnswer(model=answer.model, usage=answer.usage)
        read.add(answer.choices[0], answer.choices[0].message)
        return read


def read_stream(chunks: Iterable[ChatCompletionChunk]) -> ChatAnswer:
    """One answer from the pieces of a stream. Raises Transient if it ends early."""
    read = ChatAnswer()
    with reading():
        for chunk in chunks:
            read.model, read.usage = chunk.model or read.model, chunk.usage or read.usage
            for choice in (chunk.choices or ())[:1]:
                read.add(choice, choice.delta)
    if read.finish is None:
        raise Transient("the stream ended before the answer was complete")
    return read


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
    leading `<think>` block. Control tokens that the request held escaped are unescaped.
    """
    with reading():
        content, thought = split_thought(clean(answer.text))
        calls = tuple(
            parse_native(clean(call_id) or f"{call_prefix}-{number}", clean(name), arguments)
            for number, (_, (call_id, name, arguments)) in enumerate(sorted(answer.calls.items()))
        )
        if calls:
            # vLLM leaves the line break before a call in the content. Sent back, the template would add another one.
            content = content.strip()
        else:
            content, calls = split_text_calls(content, prefix=call_prefix, offered=offered)
        # One for each token, or none at all: if their number differs, they belong to other tokens.
        fits = not answer.token_ids or len(answer.logprobs) == len(answer.token_ids)
        return Completion(
            text=content,
            reasoning=clean(answer.reasoning) or thought,
            tool_calls=calls,
            finish_reason=_finish_reason(answer.finish, calls),
            usage=_usage(answer.usage, duration_s, prices),
            model=clean(model),
            token_ids=tuple(answer.token_ids) or None,
            logprobs=tuple(answer.logprobs) or None if fits else None,
        ).unescaped()


def priced(usage: Usage, prices: Prices | None) -> Usage:
    """The usage with its cost, if prices are known."""
    return usage if prices is None else usage.model_copy(update={"cost_usd": prices.cost(usage)})


def _text(content: Any) -> str:
    """The text of a message's content, which some servers send in parts."""
    if isinstance(content, list):
        return "".join(part.get("text") or "" for part in content if part.get("type") in {"text", "output_text"})
    return content or ""


def _finish_reason(
    reason: str | None, calls: tuple[ToolCall, ...]
) -> Literal["stop", "length", "tool_calls", "content_filter"]:
    """The reason in our words; one that no API names counts as an ordinary end."""
    if reason == "length":
        return "length"
    if reason == "content_filter":
        return "content_filter"
    return "tool_calls" if calls else "stop"


def _usage(sent: CompletionUsage | None, duration_s: float, prices: Prices | None) -> Usage:
    if sent is None:
        return Usage(duration_s=duration_s)
    details = sent.prompt_tokens_details
    usage = Usage(
        prompt_tokens=sent.prompt_tokens or 0,
        completion_tokens=sent.completion_tokens or 0,
        cached_tokens=(details and details.cached_tokens) or 0,
        duration_s=duration_s,
    )
    return priced(usage, prices)

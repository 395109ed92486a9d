"""Models behind Anthropic's Messages API, through the official SDK (extra `anthropic`)."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

import anthropic
from anthropic.types import Message as Answer

from gumshoe.collect.config import AnthropicConfig
from gumshoe.collect.episode.conversation import count_turns
from gumshoe.collect.policies.providers.provider import ProviderPolicy, Transient
from gumshoe.errors import ContextOverflow
from gumshoe.records import Completion, Message, ToolSchema, Usage
from gumshoe.text import clean
from gumshoe.tools.calls.parsing import parse_native, split_text_calls

Blocks = list[dict[str, Any]]
FINISH: dict[str, Literal["stop", "length", "tool_calls", "content_filter"]] = {
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "refusal": "content_filter",
}
_FORBIDDEN = re.compile(r"[^a-zA-Z0-9_-]")


class AnthropicPolicy(ProviderPolicy[AnthropicConfig]):
    """The Messages API. System prompt, tools and the conversation so far are marked for the provider's cache."""

    kind = "anthropic"
    sdk_error = anthropic.APIError
    overflow_status = frozenset({400, 413})
    _client: anthropic.Anthropic

    def __init__(self, config: AnthropicConfig, **options: Any) -> None:
        super().__init__(config, **options)
        self._thoughts: dict[int, Blocks] = {}  # of the answers so far, by turn

    def _connect(self) -> anthropic.Anthropic:
        return anthropic.Anthropic(
            base_url=self._config.base_url, api_key=self._key, timeout=self._config.timeout_s, max_retries=0
        )

    def _request(self, messages: Sequence[Message], tools: Sequence[ToolSchema]) -> dict[str, Any]:
        config = self._config
        # Thinking can continue only if every earlier thought is at hand; those of a killed process are not.
        has_all_thoughts = all(turn in self._thoughts for turn in range(count_turns(messages)))
        thinking = config.thinking if has_all_thoughts else None
        system, turns = as_blocks(messages, self._thoughts if thinking else {})
        request: dict[str, Any] = {"model": self.model, "max_tokens": config.max_tokens, "messages": turns}
        if system:
            request["system"] = [{"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}]
        if tools:
            request["tools"] = [as_tool(tool) for tool in tools]
            request["tool_choice"] = {"type": {"auto": "auto", "required": "any"}[config.tool_choice]}
        # The SDK has no sampling arguments: the newest models do without them, older ones and other servers do not.
        optional = {"temperature": config.temperature, "top_p": config.top_p, "thinking": thinking}
        further = {name: value for name, value in optional.items() if value is not None} | config.extra_body
        return {**request, "extra_body": further} if further else request

    def _answer(self, request: dict[str, Any], turn: int, offered: Collection[str]) -> Completion:
        answer = self._ask(request)
        if answer.stop_reason is None:
            raise Transient("the answer ended before it was complete")
        if answer.stop_reason == "model_context_window_exceeded":
            raise ContextOverflow(f"the conversation no longer fits {self.model}")
        self._thoughts[turn] = thoughts_of(answer)
        return read_message(answer, model=self.model, call_prefix=f"call-{turn}", offered=offered)

    def _ask(self, request: dict[str, Any]) -> Answer:
        if not self._config.stream:
            return self._client.messages.create(**request)
        with self._client.messages.stream(**request) as stream:
            return stream.get_final_message()


def as_blocks(messages: Sequence[Message], thoughts: Mapping[int, Blocks]) -> tuple[str, list[dict[str, Any]]]:
    """The system text, and the turns, which alternate between user and assistant.

    The last block of the last turn is marked for the provider's cache: the history only ever grows. `thoughts` are, by
    turn, the blocks of thinking that the answer came with; the API wants them back unchanged.
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


def read_message(answer: Answer, *, model: str, call_prefix: str, offered: Collection[str]) -> Completion:
    """The completion that an answer holds; calls left in the text are read from there, as for `split_text_calls`."""
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
        usage=_usage(answer),
        model=clean(answer.model or model),
    )


def thoughts_of(answer: Answer) -> Blocks:
    """The blocks of thinking, as they must be sent back."""
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


def _usage(answer: Answer) -> Usage:
    """The tokens: what the API calls input excludes what was read from its cache or written to it."""
    cached = answer.usage.cache_read_input_tokens or 0
    written = answer.usage.cache_creation_input_tokens or 0
    return Usage(
        prompt_tokens=answer.usage.input_tokens + cached + written,
        completion_tokens=answer.usage.output_tokens,
        cached_tokens=cached,
    )

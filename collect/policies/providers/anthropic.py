"""Models behind Anthropic's Messages API, through the official SDK (extra `anthropic`)."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import anthropic

from gumshoe.collect.policies.llm import find_key
from gumshoe.collect.policies.providers.answers import reading
from gumshoe.collect.policies.providers.anthropic_chat import (
    Blocks,
    as_blocks,
    as_tool,
    read_message,
    thoughts_of,
)
from gumshoe.collect.policies.providers.provider import Provider
from gumshoe.collect.policies.providers.retry import Transient
from gumshoe.collect.policy_config import AnthropicConfig
from gumshoe.errors import ContextOverflow
from gumshoe.records import Completion, Message, ToolSchema

__all__ = ["AnthropicPolicy"]

OVERFLOW_STATUS = frozenset({400, 413})


class AnthropicPolicy:
    """One episode's conversation with a model.

    The SDK's own retries are off: ours also cover answers that do not fit the API. The system prompt, the tools and the
    conversation so far are marked for the provider's cache.

    Args:
        config: server, model and sampling.
        seed: chooses the endpoint, one for the whole episode, and the jitter.
        environ: where keys are looked up.
        pause: waits the given number of seconds between tries.
    """

    kind = "anthropic"
    trusted = False

    def __init__(
        self,
        config: AnthropicConfig,
        *,
        seed: int = 0,
        environ: Mapping[str, str] = os.environ,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.model = config.model
        self._config = config
        self._thoughts: dict[int, Blocks] = {}
        key = find_key(config, environ)
        endpoints = config.endpoints or (config.base_url,)
        self._client = anthropic.Anthropic(
            base_url=endpoints[seed % len(endpoints)],
            api_key=key,
            timeout=config.timeout_s,
            max_retries=0,
        )
        self._provider = Provider(
            self.model,
            str(self._client.base_url),
            key=key,
            retry=config.retry,
            seed=seed,
            pause=pause,
        )

    def complete(self, messages: Sequence[Message], tools: Sequence[ToolSchema]) -> Completion:
        """Asks the model for the next turn.

        Raises:
            ContextOverflow: the conversation no longer fits the model.
            PolicyError: the server refused, or kept failing.
        """
        turn = sum(message.role == "assistant" for message in messages)
        request = self._request(messages, tools, turn)
        offered = {tool.name for tool in tools}
        started = time.monotonic()

        def attempt() -> Completion:
            answer = self._ask(request)
            if answer.stop_reason == "model_context_window_exceeded":
                raise ContextOverflow(f"the conversation no longer fits {self.model}")
            took = time.monotonic() - started
            prices, prefix = self._config.prices, f"call-{turn}"
            completion = self._provider.stored(
                read_message(
                    answer, model=self.model, duration_s=took, prices=prices, call_prefix=prefix, offered=offered
                )
            )
            self._thoughts[turn] = thoughts_of(answer)
            return completion

        return self._provider.request(attempt)

    def close(self) -> None:
        """Closes the connections. Idempotent."""
        self._client.close()

    def _request(self, messages: Sequence[Message], tools: Sequence[ToolSchema], turn: int) -> dict[str, Any]:
        config = self._config
        # Thinking can continue only if every earlier thought is at hand; those of a killed process are not.
        thinking = config.thinking if all(number in self._thoughts for number in range(turn)) else None
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

    def _ask(self, request: dict[str, Any]) -> anthropic.types.Message:
        """One try. Raises Transient, ContextOverflow or PolicyError."""
        try:
            with reading():
                if not self._config.stream:
                    answer = self._client.messages.create(**request)
                else:
                    with self._client.messages.stream(**request) as stream:
                        answer = stream.get_final_message()
                if answer.stop_reason is None:
                    raise Transient("the answer ended before it was complete")
                return answer
        except anthropic.APIStatusError as error:
            raise self._provider.refused(error, overflow=OVERFLOW_STATUS) from None
        except anthropic.APIError as error:
            raise Transient(str(error) or type(error).__name__) from None

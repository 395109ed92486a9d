"""Models behind Anthropic's Messages API, through the official SDK (extra `anthropic`)."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import anthropic
import httpx2
from anthropic.types import Message as Answer

from gumshoe.collect.config import AnthropicConfig
from gumshoe.collect.llm import find_key
from gumshoe.collect.policies.anthropic_chat import Blocks, as_blocks, as_tool, read_message, thoughts_of
from gumshoe.collect.policies.retry import Transient, is_overflow, is_transient, parse_retry_after, with_retries
from gumshoe.errors import ContextOverflow, PolicyError
from gumshoe.records import Completion, Message, ToolSchema

__all__ = ["AnthropicPolicy"]

OVERFLOW_STATUS = frozenset({400, 413})


class AnthropicPolicy:
    """One episode's conversation with a model.

    The SDK's own retries are off: ours also cover broken bodies and streams. The system prompt, the tools and the
    conversation so far are marked for the provider's cache.

    Args:
        config: server, model and sampling.
        seed: chooses the endpoint, one for the whole episode, and the jitter.
        environ: where keys are looked up.
        pause: waits so many seconds between tries.
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
        self._rng = random.Random(seed)
        self._pause = pause
        self._key = find_key(config, environ)
        self._thoughts: dict[int, Blocks] = {}
        endpoints = config.endpoints or (config.base_url,)
        self._client = anthropic.Anthropic(
            base_url=endpoints[seed % len(endpoints)], api_key=self._key, timeout=config.timeout_s, max_retries=0
        )

    def complete(self, messages: Sequence[Message], tools: Sequence[ToolSchema]) -> Completion:
        """Asks the model for the next turn.

        Raises:
            ContextOverflow: the conversation no longer fits the model.
            PolicyError: the server refused, or went on failing.
        """
        turn = sum(message.role == "assistant" for message in messages)
        request = self._request(messages, tools, turn)
        started = time.monotonic()
        answer = with_retries(
            lambda: self._ask(request),
            self._config.retry,
            what=f"a completion of {self.model} at {self._client.base_url}",
            rng=self._rng,
            pause=self._pause,
        )
        if answer.stop_reason == "model_context_window_exceeded":
            raise ContextOverflow(f"the conversation no longer fits {self.model}")
        self._thoughts[turn] = thoughts_of(answer)
        took = time.monotonic() - started
        return read_message(
            answer, model=self.model, duration_s=took, prices=self._config.prices, call_prefix=f"call-{turn}"
        )

    def close(self) -> None:
        """Closes the connections. Idempotent."""
        self._client.close()

    def _request(self, messages: Sequence[Message], tools: Sequence[ToolSchema], turn: int) -> dict[str, Any]:
        config = self._config
        # Thinking can go on only where every earlier thought is at hand; those of a killed process are not.
        thinking = config.thinking if all(number in self._thoughts for number in range(turn)) else None
        system, turns = as_blocks(messages, self._thoughts if thinking else {})
        request: dict[str, Any] = {"model": self.model, "max_tokens": config.max_tokens, "messages": turns}
        if system:
            request["system"] = [{"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}]
        if tools:
            request["tools"] = [as_tool(tool) for tool in tools]
            request["tool_choice"] = {"type": {"auto": "auto", "required": "any"}[config.tool_choice]}
        # Sampling is not among the SDK's arguments: the newest models do without, older ones and other servers do not.
        optional = {"temperature": config.temperature, "top_p": config.top_p, "thinking": thinking}
        further = {name: value for name, value in optional.items() if value is not None} | config.extra_body
        return {**request, "extra_body": further} if further else request

    def _ask(self, request: dict[str, Any]) -> Answer:
        """One try. Raises Transient, ContextOverflow or PolicyError."""
        try:
            answer = self._streamed(request) if self._config.stream else self._create(**request)
        except anthropic.APIStatusError as error:
            raise self._refused(error) from None
        except anthropic.APIError as error:
            raise Transient(self._safe(str(error) or type(error).__name__)) from None
        except ValueError as error:
            raise Transient(f"the answer is not whole JSON: {error}") from None
        if not _is_whole(answer):
            raise Transient(f"the answer is no message: {self._safe(str(answer))[:200]!r}")
        return answer

    def _create(self, **request: Any) -> Any:
        """The SDK's call. What it answers is checked, not trusted: a server may send anything."""
        return self._client.messages.create(**request)

    def _streamed(self, request: dict[str, Any]) -> Any:
        """The answer put together from its pieces. Raises Transient where they do not make one."""
        try:
            with self._client.messages.stream(**request) as pieces:
                return pieces.get_final_message()
        except (httpx2.TransportError, RuntimeError, AssertionError) as error:
            # The last two are how the SDK says that events came in an order that makes no message, or that none came.
            raise Transient(f"the stream broke: {error or 'it ended before its answer began'}") from None

    def _refused(self, error: anthropic.APIStatusError) -> Exception:
        said = self._safe(" ".join(str(error).split()))[:500]
        # An error in the middle of a stream comes with the status of its beginning, 200.
        if is_transient(error.status_code) or error.status_code < 400:
            return Transient(said, parse_retry_after(error.response.headers.get("retry-after")))
        if error.status_code in OVERFLOW_STATUS and is_overflow(said):
            return ContextOverflow(f"the conversation no longer fits {self.model}: {said}")
        return PolicyError(f"{self._client.base_url} refused the request for {self.model}: {said}")

    def _safe(self, text: str) -> str:
        return text.replace(self._key, "[key]") if len(self._key) > 5 else text


def _is_whole(answer: Any) -> bool:
    if not isinstance(answer, Answer):
        return False
    content, usage = getattr(answer, "content", None), getattr(answer, "usage", None)
    return isinstance(content, list) and usage is not None and getattr(answer, "stop_reason", None) is not None

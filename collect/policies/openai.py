"""Models behind any server that speaks the OpenAI chat API, through the official SDK."""

from __future__ import annotations

import importlib
import json
import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import openai
from openai.types.chat import ChatCompletion

from gumshoe.collect.chat import as_native_chat, as_template_chat, as_text_chat
from gumshoe.collect.config import OpenAIConfig
from gumshoe.collect.llm import find_key
from gumshoe.collect.policies.answers import merge_stream, read_answer
from gumshoe.collect.policies.retry import Transient, is_overflow, is_transient, parse_retry_after, with_retries
from gumshoe.errors import ConfigError, ContextOverflow, PolicyError
from gumshoe.records import Completion, Message, ToolSchema

__all__ = ["OpenAIPolicy"]


ENTRA_SCOPE = "https://cognitiveservices.azure.com/.default"


class OpenAIPolicy:
    """One episode's conversation with a model.

    The SDK's own retries are off: ours also cover broken bodies and streams. Everything that a provider says is
    shown without the key.

    Args:
        config: server, model and sampling.
        seed: chooses the endpoint (one for the whole episode, so that its prefix cache stays warm) and the jitter.
        environ: where keys are looked up.
        pause: waits so many seconds between tries.
    """

    kind = "openai"
    trusted = False

    def __init__(
        self,
        config: OpenAIConfig,
        *,
        seed: int = 0,
        environ: Mapping[str, str] = os.environ,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.model = config.label or config.model
        self._config = config
        self._seed = seed
        self._rng = random.Random(seed)
        self._pause = pause
        self._key = find_key(config, environ)
        endpoints = config.endpoints or (config.base_url,)
        self._client = make_client(config, endpoints[seed % len(endpoints)], self._key)

    def complete(self, messages: Sequence[Message], tools: Sequence[ToolSchema]) -> Completion:
        """Asks the model for the next turn.

        Raises:
            ContextOverflow: the conversation no longer fits the model.
            PolicyError: the server refused, or went on failing.
        """
        request = self._request(messages, tools)
        started = time.monotonic()
        answer = with_retries(
            lambda: self._ask(request),
            self._config.retry,
            what=f"a completion of {self.model} at {self._client.base_url}",
            rng=self._rng,
            pause=self._pause,
        )
        return read_answer(
            answer,
            model=self._config.label or answer.model or self.model,
            duration_s=time.monotonic() - started,
            prices=self._config.prices,
            call_prefix=f"call-{sum(message.role == 'assistant' for message in messages)}",
        )

    def _create(self, **request: Any) -> Any:
        """The SDK's call. What it answers is checked, not trusted: a server may send anything."""
        return self._client.chat.completions.create(**request)

    def close(self) -> None:
        """Closes the connections. Idempotent."""
        self._client.close()

    def _request(self, messages: Sequence[Message], tools: Sequence[ToolSchema]) -> dict[str, Any]:
        config = self._config
        if config.syntax == "text":
            request: dict[str, Any] = {"messages": as_text_chat(messages, tools)}
        else:
            as_sent = as_template_chat if config.syntax == "template" else as_native_chat
            request = {"messages": as_sent(messages)}
            if tools:
                request["tools"] = [tool.as_openai() for tool in tools]
                request["tool_choice"] = config.tool_choice
        optional = {
            "temperature": config.temperature,
            "top_p": config.top_p,
            config.max_tokens_name: config.max_tokens,
            "seed": self._seed if config.send_seed else None,
            "parallel_tool_calls": config.parallel_tool_calls if tools and config.syntax == "native" else None,
            "extra_body": config.extra_body or None,
        }
        return {
            "model": config.model,
            **request,
            **{name: value for name, value in optional.items() if value is not None},
        }

    def _ask(self, request: dict[str, Any]) -> ChatCompletion:
        """One try. Raises Transient, ContextOverflow or PolicyError."""
        try:
            if self._config.stream:
                return merge_stream(self._create(**request, stream=True, stream_options={"include_usage": True}))
            answer = self._create(**request)
        except openai.APIStatusError as error:
            raise self._refused(error) from None
        except openai.APIError as error:
            raise Transient(self._safe(str(error) or type(error).__name__)) from None
        except json.JSONDecodeError as error:
            raise Transient(f"the answer is not whole JSON: {error}") from None
        if not isinstance(answer, ChatCompletion) or not answer.choices:
            raise Transient(f"the answer is no chat completion: {self._safe(str(answer))[:200]!r}")
        return answer

    def _refused(self, error: openai.APIStatusError) -> Exception:
        said = self._safe(" ".join(str(error).split()))[:500]
        if is_transient(error.status_code):
            return Transient(said, parse_retry_after(error.response.headers.get("retry-after")))
        if error.status_code in {400, 413, 422} and is_overflow(f"{error.code} {said}"):
            return ContextOverflow(f"the conversation no longer fits {self.model}: {said}")
        return PolicyError(f"{self._client.base_url} refused the request for {self.model}: {said}")

    def _safe(self, text: str) -> str:
        return text.replace(self._key, "[key]") if len(self._key) > 5 else text


def make_client(config: OpenAIConfig, endpoint: str | None, key: str) -> openai.OpenAI:
    """The SDK's client for one endpoint. Raises ConfigError where Azure is asked for and something lacks."""
    if config.azure_api_version is None:
        return openai.OpenAI(base_url=endpoint, api_key=key, timeout=config.timeout_s, max_retries=0)
    if endpoint is None:
        raise ConfigError("policy.azure_api_version needs policy.base_url: https://NAME.openai.azure.com")
    return openai.AzureOpenAI(
        azure_endpoint=endpoint,
        api_version=config.azure_api_version,
        api_key=None if config.azure_entra else key,
        azure_ad_token_provider=_entra_tokens() if config.azure_entra else None,
        timeout=config.timeout_s,
        max_retries=0,
    )


def _entra_tokens() -> Callable[[], str]:
    """What gets a token for each request, from the cache where one still holds. It raises PolicyError."""
    try:
        identity = importlib.import_module("azure.identity")
        failures = importlib.import_module("azure.core.exceptions")
    except ModuleNotFoundError:
        raise ConfigError("policy.azure_entra needs a package more: pip install 'gumshoe[azure]'") from None
    provider = identity.get_bearer_token_provider(identity.DefaultAzureCredential(), ENTRA_SCOPE)

    def token() -> str:
        try:
            return provider()
        except failures.AzureError as error:
            said = " ".join(str(error).split())[:500]
            raise PolicyError(f"Entra ID gives no token: {said}") from None

    return token

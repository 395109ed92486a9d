"""Models behind any server that speaks the OpenAI chat API, through the official SDK."""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import openai

from gumshoe.collect.episode.conversation import as_native_chat, as_template_chat, as_text_chat
from gumshoe.collect.policies.llm import find_key
from gumshoe.collect.policies.providers.answers import ChatAnswer, read_answer, read_stream, read_whole, reading
from gumshoe.collect.policies.providers.provider import Provider
from gumshoe.collect.policies.providers.retry import Transient
from gumshoe.collect.policy_config import OpenAIConfig
from gumshoe.errors import ConfigError, PolicyError
from gumshoe.records import Completion, Message, ToolSchema

__all__ = ["OpenAIPolicy"]


OVERFLOW_STATUS = frozenset({400, 413, 422})
ENTRA_SCOPE = "https://cognitiveservices.azure.com/.default"


class OpenAIPolicy:
    """One episode's conversation with a model.

    The SDK's own retries are off: ours also cover answers that do not fit the API. Everything that a provider says is
    shown without the key.

    Args:
        config: server, model and sampling.
        seed: chooses the endpoint (one for the whole episode, so that its prefix cache stays warm) and the jitter.
        environ: where keys are looked up.
        pause: waits the given number of seconds between tries.
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
        key = find_key(config, environ)
        endpoints = config.endpoints or (config.base_url,)
        self._client = make_client(config, endpoints[seed % len(endpoints)], key)
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
        request = self._request(messages, tools)
        prefix = f"call-{sum(message.role == 'assistant' for message in messages)}"
        offered = {tool.name for tool in tools}
        started = time.monotonic()

        def attempt() -> Completion:
            answer = self._ask(request)
            model = self._config.label or answer.model or self.model
            took = time.monotonic() - started
            prices = self._config.prices
            return self._provider.stored(
                read_answer(answer, model=model, duration_s=took, prices=prices, call_prefix=prefix, offered=offered)
            )

        return self._provider.request(attempt)

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
            "logprobs": config.token_ids or None,
            "extra_body": {**({"return_token_ids": True} if config.token_ids else {}), **config.extra_body} or None,
        }
        return {
            "model": config.model,
            **request,
            **{name: value for name, value in optional.items() if value is not None},
        }

    def _ask(self, request: dict[str, Any]) -> ChatAnswer:
        """One try. Raises Transient, ContextOverflow or PolicyError."""
        create = self._client.chat.completions.create
        try:
            with reading():
                if not self._config.stream:
                    return read_whole(create(**request))
                with create(**request, stream=True, stream_options={"include_usage": True}) as chunks:
                    return read_stream(chunks)
        except openai.APIStatusError as error:
            raise self._provider.refused(error, overflow=OVERFLOW_STATUS, code=error.code) from None
        except openai.APIError as error:
            raise Transient(str(error) or type(error).__name__) from None


def make_client(config: OpenAIConfig, endpoint: str | None, key: str) -> openai.OpenAI:
    """The SDK's client for one endpoint. Raises ConfigError if Azure is asked for and something is missing."""
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
    """A function that gets a token for each request, cached while one is still valid. It raises PolicyError."""
    try:
        identity = importlib.import_module("azure.identity")
        failures = importlib.import_module("azure.core.exceptions")
    except ModuleNotFoundError:
        raise ConfigError("policy.azure_entra needs another package: pip install 'gumshoe-debug[azure]'") from None
    provider = identity.get_bearer_token_provider(identity.DefaultAzureCredential(), ENTRA_SCOPE)

    def token() -> str:
        try:
            return provider()
        except failures.AzureError as error:
            said = " ".join(str(error).split())[:500]
            raise PolicyError(f"Entra ID returned no token: {said}") from None

    return token

"""Models behind any server that speaks the OpenAI chat API, through the official SDK."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import openai
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.completion_usage import CompletionUsage

from gumshoe.collect.config import OpenAIConfig
from gumshoe.collect.episode.conversation import as_native_chat, as_template_chat, as_text_chat, split_thought
from gumshoe.collect.policies.providers.provider import ProviderPolicy, Transient
from gumshoe.errors import ConfigError, PolicyError
from gumshoe.records import Completion, Message, ToolCall, ToolSchema, Usage
from gumshoe.text import clean
from gumshoe.tools.calls.parsing import parse_native, split_text_calls

ENTRA_SCOPE = "https://cognitiveservices.azure.com/.default"


class OpenAIPolicy(ProviderPolicy[OpenAIConfig]):
    """The chat API, of OpenAI, Azure or any other server. Traces name the model by its label, if it has one."""

    kind = "openai"
    sdk_error = openai.APIError
    overflow_status = frozenset({400, 413, 422})
    _client: openai.OpenAI

    def __init__(self, config: OpenAIConfig, **options: Any) -> None:
        super().__init__(config, **options)
        self.model = config.label or config.model

    def _connect(self) -> openai.OpenAI:
        config = self._config
        if config.azure_api_version is None:
            return openai.OpenAI(base_url=config.base_url, api_key=self._key, timeout=config.timeout_s, max_retries=0)
        if config.base_url is None:
            raise ConfigError("policy.azure_api_version needs policy.base_url: https://NAME.openai.azure.com")
        return openai.AzureOpenAI(
            azure_endpoint=config.base_url,
            api_version=config.azure_api_version,
            api_key=None if config.azure_entra else self._key,
            azure_ad_token_provider=_entra_tokens() if config.azure_entra else None,
            timeout=config.timeout_s,
            max_retries=0,
        )

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
            "logprobs": config.token_ids or None,
            "extra_body": {**({"return_token_ids": True} if config.token_ids else {}), **config.extra_body} or None,
        }
        return {
            "model": config.model,
            **request,
            **{name: value for name, value in optional.items() if value is not None},
        }

    def _answer(self, request: dict[str, Any], turn: int, offered: Collection[str]) -> Completion:
        answer = self._ask(request)
        model = self._config.label or answer.model or self.model
        return read_answer(answer, model=model, call_prefix=f"call-{turn}", offered=offered)

    def _ask(self, request: dict[str, Any]) -> ChatAnswer:
        create = self._client.chat.completions.create
        if not self._config.stream:
            return read_whole(create(**request))
        with create(**request, stream=True, stream_options={"include_usage": True}) as chunks:
            return read_stream(chunks)


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


@dataclass
class WrittenCall:
    """A call as it came, in one piece or several; `arguments` are JSON text."""

    id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass
class ChatAnswer:
    """One choice of a chat completion, put together from its message or from the pieces of a stream.

    `calls` are by their index.
    """

    model: str | None = None
    text: str = ""
    reasoning: str = ""
    calls: dict[int, WrittenCall] = field(default_factory=dict[int, WrittenCall])
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
            written = self.calls.setdefault(position if index is None else index, WrittenCall())
            written.id = written.id or call.id or ""
            if call.function is not None:
                given = call.function.arguments
                written.name += call.function.name or ""
                written.arguments += given if isinstance(given, str) else json.dumps(given) if given else ""
        # vLLM's name for what was sampled; the log probabilities are the API's own.
        self.token_ids += getattr(choice, "token_ids", None) or ()
        self.logprobs += [entry.logprob for entry in (choice.logprobs and choice.logprobs.content) or ()]


def read_whole(answer: ChatCompletion) -> ChatAnswer:
    """An answer that came in one piece."""
    read = ChatAnswer(model=answer.model, usage=answer.usage)
    read.add(answer.choices[0], answer.choices[0].message)
    return read


def read_stream(chunks: Iterable[ChatCompletionChunk]) -> ChatAnswer:
    """One answer from the pieces of a stream. Raises Transient if it ends early."""
    read = ChatAnswer()
    for chunk in chunks:
        read.model, read.usage = chunk.model or read.model, chunk.usage or read.usage
        for choice in (chunk.choices or ())[:1]:
            read.add(choice, choice.delta)
    if read.finish is None:
        raise Transient("the stream ended before the answer was complete")
    return read


def read_answer(answer: ChatAnswer, *, model: str, call_prefix: str, offered: Collection[str]) -> Completion:
    """The completion that a server's answer holds.

    Calls are read from the native field, or from the content if the server left them there; `offered` are the names of
    the tools that a call without tags may name. Reasoning is taken from `reasoning_content` or `reasoning`, or from a
    leading `<think>` block. Control tokens that the request held escaped are unescaped.

    Raises Transient if a call has neither a name nor arguments: the server lost what the model wrote.
    """
    if any(not call.name and not call.arguments for call in answer.calls.values()):
        raise Transient("the answer has a call without a name")
    content, thought = split_thought(clean(answer.text))
    calls = tuple(
        parse_native(clean(call.id) or f"{call_prefix}-{number}", clean(call.name), call.arguments)
        for number, (_, call) in enumerate(sorted(answer.calls.items()))
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
        usage=_usage(answer.usage),
        model=clean(model),
        token_ids=tuple(answer.token_ids) or None,
        logprobs=tuple(answer.logprobs) or None if fits else None,
    ).unescaped()


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


def _usage(sent: CompletionUsage | None) -> Usage:
    if sent is None:
        return Usage()
    details = sent.prompt_tokens_details
    return Usage(
        prompt_tokens=sent.prompt_tokens or 0,
        completion_tokens=sent.completion_tokens or 0,
        cached_tokens=(details and details.cached_tokens) or 0,
    )

"""Raw HTTP requests, so that no client library hides a server's mistakes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import requests

from gumshoe.errors import ServeError

__all__ = ["Prompt", "ServerReply", "Wire"]

REFUSALS = frozenset({400, 404, 405, 415, 422, 501})


@dataclass(frozen=True)
class ServerReply:
    """A server's answer to a chat request. `body` is empty if it refused; `said` then tells why."""

    status: int
    body: dict[str, Any]
    said: str = ""

    @property
    def refused(self) -> bool:
        """Whether the server says that it cannot do this."""
        return self.status in REFUSALS

    @property
    def choice(self) -> dict[str, Any]:
        """The first choice; empty where there is none."""
        choices = self.body.get("choices")
        return choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}

    @property
    def message(self) -> dict[str, Any]:
        """The first choice's message; empty where there is none."""
        message = self.choice.get("message")
        return message if isinstance(message, dict) else {}

    @property
    def text(self) -> str:
        """The message's text."""
        return str(self.message.get("content") or "")

    @property
    def finish(self) -> str:
        """Why the completion ended, as the server named it."""
        return str(self.choice.get("finish_reason"))

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The functions of the native tool calls: name, and arguments as they came."""
        found = self.message.get("tool_calls")
        entries: list[Any] = found if isinstance(found, list) else []
        return [entry.get("function") or {} for entry in entries if isinstance(entry, dict)]

    @property
    def usage(self) -> dict[str, int]:
        """Token counts by name; empty where there are none."""
        usage = self.body.get("usage")
        return usage if isinstance(usage, dict) else {}


@dataclass(frozen=True)
class Prompt:
    """What the server made of a conversation: how many tokens, and which, if it says."""

    count: int
    ids: tuple[int, ...] | None


class Wire:
    """One server and one model on it.

    Args:
        base_url: with the version, such as `http://127.0.0.1:8000/v1`.
        model: the name that requests give.
        timeout_s: seconds to wait for an answer.
    """

    def __init__(self, base_url: str, model: str, *, timeout_s: float = 300.0) -> None:
        self._url = f"{base_url.rstrip('/')}/chat/completions"
        self._model = model
        self._timeout = timeout_s
        self._session = requests.Session()
        self._says_tokens = True

    def close(self) -> None:
        """Closes the connections."""
        self._session.close()

    def chat(self, messages: Sequence[Mapping[str, Any]], **fields: Any) -> ServerReply:
        """One answer, at temperature 0. Raises ServeError where nobody answers."""
        response = self._post(messages, fields, stream=False)
        try:
            body = response.json()
        except ValueError:
            body = None
        if response.status_code != 200 or not isinstance(body, dict):
            return ServerReply(response.status_code, {}, " ".join(response.text.split())[:300])
        return ServerReply(200, body)

    def stream(self, messages: Sequence[Mapping[str, Any]], **fields: Any) -> tuple[int, list[dict[str, Any]], bool]:
        """Status, the pieces of a streamed answer, and whether it ended with `[DONE]`."""
        response = self._post(messages, {**fields, "stream_options": {"include_usage": True}}, stream=True)
        pieces: list[dict[str, Any]] = []
        done = False
        for raw in response.iter_lines():
            line = raw.decode("utf-8", "replace")
            if line == "data: [DONE]":
                done = True
            elif line.startswith("data: "):
                pieces.append(json.loads(line.removeprefix("data: ")))
        return response.status_code, pieces, done

    def prompt(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> Prompt | ServerReply:
        """What the server renders before it asks the model; its refusal if it does not tell."""
        fields = {"tools": list(tools), "max_tokens": 1}
        answer = self.chat(messages, **fields, **({"return_token_ids": True} if self._says_tokens else {}))
        if answer.refused and self._says_tokens:
            self._says_tokens = False
            answer = self.chat(messages, **fields)
        if "prompt_tokens" not in answer.usage:
            return answer
        ids = answer.body.get("prompt_token_ids")
        return Prompt(answer.usage["prompt_tokens"], tuple(ids) if isinstance(ids, list) else None)

    def _post(
        self, messages: Sequence[Mapping[str, Any]], fields: Mapping[str, Any], *, stream: bool
    ) -> requests.Response:
        request = {"model": self._model, "messages": list(messages), "temperature": 0, **fields}
        try:
            return self._session.post(
                self._url, json={**request, "stream": stream}, timeout=self._timeout, stream=stream
            )
        except requests.RequestException as error:
            raise ServeError(f"no server responds at {self._url}: {' '.join(str(error).split())[:200]}") from None

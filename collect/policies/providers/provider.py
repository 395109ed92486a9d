"""What the policies of all providers share: retries, answers that do not fit, and a key that is never shown."""

from __future__ import annotations

import logging
import os
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Generic, TypeVar

import httpx2
import tenacity
from pydantic import ValidationError

from gumshoe.collect.config import AnthropicConfig, OpenAIConfig
from gumshoe.collect.episode.conversation import count_turns
from gumshoe.collect.policies.llm import find_key
from gumshoe.errors import ContextOverflow, PolicyError
from gumshoe.records import Completion, Message, ToolSchema, Usage

log = logging.getLogger(__name__)
SHOWN = 500
RETRIED_STATUS = frozenset({408, 409, 425, 429})
OVERFLOW_SIGNS = (
    "context_length_exceeded",
    "maximum context length",
    "context window",
    "max_model_len",
    "too long",
    "request_too_large",
)
LONGEST_S, LONGEST_RETRY_AFTER_S = 60.0, 300.0
"""The longest wait between two attempts, and the longest that a server may ask for."""
MISFITS = (AssertionError, AttributeError, LookupError, OverflowError, RuntimeError, TypeError, ValueError)
"""What the SDKs raise where a server's answer has other types: they do not check it."""
MARK = "[key]"
MIN_KEY, MIN_SECRET = 6, 16
"""Shorter keys are the dummies of local servers (`EMPTY`, `not-needed`): the shortest that a message may not show, and
the shortest that an answer, in which a dummy may be an ordinary word, may not hold.
"""


ConfigT = TypeVar("ConfigT", OpenAIConfig, AnthropicConfig)


class ProviderPolicy(ABC, Generic[ConfigT]):
    """One episode's conversation with a model behind a server.

    The SDK's own retries are off: ours also cover answers that do not fit the API. Everything that a provider says is
    shown without the key.

    Args:
        config: server, model and sampling.
        seed: decides the jitter, and the model's choices if it is sent.
        environ: where keys are looked up.
        pause: waits the given number of seconds between tries.
    """

    trusted = False
    sdk_error: type[Exception]
    """What the SDK raises; for a status other than success, with `status_code` and `response`."""
    overflow_status: frozenset[int]
    """The statuses that may mean that a conversation is too long."""

    def __init__(
        self,
        config: ConfigT,
        *,
        seed: int = 0,
        environ: Mapping[str, str] = os.environ,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.model = config.model
        self._config = config
        self._seed = seed
        self._key = find_key(config, environ)
        self._client = self._connect()
        self._rng = random.Random(seed)
        self._pause = pause

    def close(self) -> None:
        """Closes the connections. Idempotent."""
        self._client.close()

    def complete(self, messages: Sequence[Message], tools: Sequence[ToolSchema]) -> Completion:
        """Asks the model for the next turn.

        Raises:
            ContextOverflow: the conversation no longer fits the model.
            PolicyError: the server refused, or kept failing.
        """
        request = self._request(messages, tools)
        turn = count_turns(messages)
        offered = {tool.name for tool in tools}
        started = time.monotonic()
        what = f"a completion of {self.model} at {self._client.base_url}"

        def wait(state: tenacity.RetryCallState) -> float:
            return _wait(state.attempt_number, _failure(state).retry_after, self._config.retry.first_s, self._rng)

        def report(state: tenacity.RetryCallState) -> None:
            log.info("%s failed, next try in %.1f s: %s", what, state.upcoming_sleep, _failure(state))

        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(Transient),
            stop=tenacity.stop_after_attempt(self._config.retry.attempts),
            wait=wait,
            sleep=self._pause,
            before_sleep=report,
            reraise=True,
        )
        try:
            return retrying(self._try_once, request, turn, offered, started)
        except Transient as error:
            attempts = self._config.retry.attempts
            raise PolicyError(f"{what} failed {attempts} times, last with: {error}") from None

    @abstractmethod
    def _connect(self) -> Any:
        """The SDK's client. Raises ConfigError if something is missing."""

    @abstractmethod
    def _request(self, messages: Sequence[Message], tools: Sequence[ToolSchema]) -> dict[str, Any]:
        """The arguments with which the SDK is called."""

    @abstractmethod
    def _answer(self, request: dict[str, Any], turn: int, offered: Collection[str]) -> Completion:
        """The completion of one try, its usage without time and cost.

        Args:
            request: made by `_request`.
            turn: the number of the turn, from 0.
            offered: names of the tools that may be called.

        Raises:
            Transient: it is worth another try. What is raised for a value of the wrong type counts as that.
            ContextOverflow, PolicyError: as `complete`.
            Exception: an `sdk_error`.
        """

    def _try_once(self, request: dict[str, Any], turn: int, offered: Collection[str], started: float) -> Completion:
        """The completion as it may be stored: without the key. `started` is when the first try began.

        Raises Transient, whose message is one line, if it is worth another try, and what `complete` raises.
        """
        try:
            completion = self._answer(request, turn, offered)
            spent = self._measured(completion.usage, time.monotonic() - started)
            answer = completion.model_copy(update={"usage": spent}).model_dump_json()
            return Completion.model_validate_json(_without_key(answer, self._key, MIN_SECRET))
        except Transient as error:
            raise Transient(self._shown(str(error)), error.retry_after) from None
        except self.sdk_error as error:
            raise self._meaning(error) from None
        except httpx2.HTTPError as error:
            raise Transient(self._shown(f"the answer broke off: {error or type(error).__name__}")) from None
        except (ValidationError, RecursionError) as error:
            raise Transient(self._shown(f"the answer cannot be stored: {error}")) from None
        except MISFITS as error:
            raise Transient(self._shown(f"the answer does not fit the API: {type(error).__name__}: {error}")) from None

    def _meaning(self, error: Any) -> Exception:
        """What an `sdk_error` means: Transient, ContextOverflow or PolicyError."""
        said = self._shown(str(error) or type(error).__name__)
        status = getattr(error, "status_code", None)
        if status is None:
            return Transient(said)
        # An error in the middle of a stream comes with the status of its beginning, 200.
        if status in RETRIED_STATUS or not 400 <= status < 500:
            return Transient(said, _seconds(error.response.headers.get("retry-after")))
        signs = f"{getattr(error, 'code', None)} {said}".lower()
        if status in self.overflow_status and any(sign in signs for sign in OVERFLOW_SIGNS):
            return ContextOverflow(f"the conversation no longer fits {self.model}: {said}")
        return PolicyError(f"{self._client.base_url} refused the request for {self.model}: {said}")

    def _measured(self, usage: Usage, duration_s: float) -> Usage:
        """The usage with the time that it took and, if prices and tokens are known, its cost."""
        prices = self._config.prices
        cost = prices.cost(usage) if prices is not None and usage.tokens else None
        return usage.model_copy(update={"duration_s": duration_s, "cost_usd": cost})

    def _shown(self, text: str) -> str:
        """What a provider said, on one line, shortened, without the key."""
        return _without_key(" ".join(text.split()), self._key, MIN_KEY)[:SHOWN]


class Transient(Exception):
    """A failure that may pass. `retry_after` is the wait in seconds that the server asked for."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


def _failure(state: tenacity.RetryCallState) -> Transient:
    error = state.outcome.exception() if state.outcome is not None else None
    assert isinstance(error, Transient)
    return error


def _seconds(retry_after: str | None) -> float | None:
    """The seconds of a `Retry-After` header; None if it is missing, or a date."""
    try:
        return max(0.0, float(retry_after or ""))
    except ValueError:
        return None


def _wait(number: int, asked: float | None, first_s: float, rng: random.Random) -> float:
    backoff = min(LONGEST_S, first_s * 2.0 ** (number - 1)) * rng.uniform(0.5, 1.0)
    return backoff if asked is None else max(backoff, min(asked, LONGEST_RETRY_AFTER_S))


def _without_key(text: str, key: str, shortest: int) -> str:
    """The text with the key replaced, unless it is shorter than `shortest`."""
    return text.replace(key, MARK) if len(key) >= shortest else text

"""What the policies of all providers share: retries, answers that do not fit, and a key that is never shown."""

from __future__ import annotations

import email.utils
import logging
import random
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import httpx2
import tenacity
from pydantic import ValidationError

from gumshoe.collect.config import Prices, RetryConfig
from gumshoe.collect.episode.conversation import count_turns
from gumshoe.errors import ContextOverflow, PolicyError
from gumshoe.records import Completion, Message, ToolSchema, Usage

__all__ = ["ProviderPolicy", "StatusError", "Transient", "parse_retry_after", "priced"]

log = logging.getLogger(__name__)
SHOWN = 500
READ = 4000
RETRIED_STATUS = frozenset({408, 409, 425, 429})
OVERFLOW_SIGNS = (
    "context_length_exceeded",
    "maximum context length",
    "context window",
    "max_model_len",
    "too long",
    "request_too_large",
)
MARK = "[key]"
MIN_KEY = 6
MIN_PART = 8
MIN_END = 3
MIN_SECRET = 16
"""Shorter keys are the dummies of local servers (`EMPTY`, `not-needed`), which may be ordinary words in an answer."""

_MASK = r"(?:\*{2,}|\.{3,}|…|•{2,}|x{4,}|X{4,})"


@contextmanager
def _reading() -> Generator[None]:
    """Raises what a value of the wrong type makes the block raise as Transient."""
    try:
        yield
    except (AssertionError, AttributeError, LookupError, OverflowError, RuntimeError, TypeError, ValueError) as error:
        raise Transient(f"the answer does not fit the API: {type(error).__name__}: {error}") from None


class StatusError(Protocol):
    """An SDK's error for a status other than success."""

    status_code: int
    response: httpx2.Response


class Client(Protocol):
    """An SDK's client for one server."""

    @property
    def base_url(self) -> object:
        """The server's address."""
        ...

    def close(self) -> None:
        """Closes its connections."""
        ...


class ProviderPolicy(ABC):
    """One episode's conversation with a model behind a server.

    The SDK's own retries are off: ours also cover answers that do not fit the API. Everything that a provider says is
    shown without the key.

    Args:
        model: its name in traces and messages.
        client: asks the server.
        key: never shown.
        retry: retries of failed requests.
        seed: chooses the jitter.
        pause: waits the given number of seconds between tries.
    """

    trusted = False

    def __init__(
        self, model: str, client: Client, *, key: str, retry: RetryConfig, seed: int, pause: Callable[[float], None]
    ) -> None:
        self.model = model
        self._url = str(client.base_url)
        self._close = client.close
        self._key = key
        self._retry = retry
        self._rng = random.Random(seed)
        self._pause = pause

    def close(self) -> None:
        """Closes the connections. Idempotent."""
        self._close()

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

        def attempt() -> Completion:
            with _reading():
                completion = self._answer(request, turn, offered, started)
            return self._stored(completion)

        return self._retried(attempt)

    @abstractmethod
    def _request(self, messages: Sequence[Message], tools: Sequence[ToolSchema]) -> dict[str, Any]:
        """The arguments with which the SDK is called."""

    @abstractmethod
    def _answer(self, request: dict[str, Any], turn: int, offered: Collection[str], started: float) -> Completion:
        """The completion of one try. What it raises for a value of the wrong type counts as Transient.

        Args:
            request: made by `_request`.
            turn: the number of the turn, from 0.
            offered: names of the tools that may be called.
            started: when the first try began, as `time.monotonic` says it.

        Raises:
            Transient: it is worth another try.
            ContextOverflow, PolicyError: as `complete`.
        """

    def _retried(self, attempt: Callable[[], Completion]) -> Completion:
        """What `attempt` returns, tried again while it raises Transient. Raises PolicyError."""
        what = f"a completion of {self.model} at {self._url}"

        def wait(state: tenacity.RetryCallState) -> float:
            return _wait(state.attempt_number, _failure(state).retry_after, self._retry, self._rng)

        def report(state: tenacity.RetryCallState) -> None:
            log.info("%s failed, next try in %.1f s: %s", what, state.upcoming_sleep, _failure(state))

        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(Transient),
            stop=tenacity.stop_after_attempt(self._retry.attempts),
            wait=wait,
            sleep=self._pause,
            before_sleep=report,
            reraise=True,
        )
        try:
            return retrying(self._one_line, attempt)
        except Transient as error:
            raise PolicyError(f"{what} failed {self._retry.attempts} times, last with: {error}") from None

    def refused(self, error: StatusError, *, overflow: frozenset[int], code: str | None = None) -> Exception:
        """What a status other than success means: Transient, ContextOverflow or PolicyError."""
        said = self.shown(str(error))
        # An error in the middle of a stream comes with the status of its beginning, 200.
        if _is_transient(error.status_code) or error.status_code < 400:
            return Transient(said, parse_retry_after(error.response.headers.get("retry-after")))
        if error.status_code in overflow and _is_overflow(f"{code} {said}"):
            return ContextOverflow(f"the conversation no longer fits {self.model}: {said}")
        return PolicyError(f"{self._url} refused the request for {self.model}: {said}")

    def shown(self, text: str) -> str:
        """What a provider said, on one line, shortened, without the key."""
        return redact(" ".join(text[:READ].split()), self._key)[:SHOWN]

    def _one_line(self, attempt: Callable[[], Completion]) -> Completion:
        try:
            return attempt()
        except Transient as error:
            raise Transient(self.shown(str(error)), error.retry_after) from None
        except httpx2.HTTPError as error:
            raise Transient(self.shown(f"the answer broke off: {error or type(error).__name__}")) from None
        except (ValidationError, RecursionError) as error:
            raise Transient(self.shown(f"the answer cannot be stored: {error}")) from None

    def _stored(self, completion: Completion) -> Completion:
        """The completion as it may be stored: without the key. Raises ValidationError if JSON cannot carry it."""
        return Completion.model_validate_json(_redact_answer(completion.model_dump_json(), self._key))


class Transient(Exception):
    """A failure that may pass. `retry_after` is the wait in seconds that the server asked for."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


def _failure(state: tenacity.RetryCallState) -> Transient:
    error = state.outcome.exception() if state.outcome is not None else None
    assert isinstance(error, Transient)
    return error


def _is_transient(status: int) -> bool:
    """Whether an answer with this HTTP status is worth another try."""
    return status in RETRIED_STATUS or status >= 500


def _is_overflow(said: str) -> bool:
    """Whether a refusal is about a conversation that no longer fits the model, in any provider's words."""
    return any(sign in said.lower() for sign in OVERFLOW_SIGNS)


def parse_retry_after(value: str | None, *, now: float | None = None) -> float | None:
    """Seconds that a `Retry-After` header asks for, in either of its forms; None if it says nothing readable."""
    if value is None:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        date = email.utils.parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    return max(0.0, date.timestamp() - (time.time() if now is None else now))


def _wait(number: int, asked: float | None, config: RetryConfig, rng: random.Random) -> float:
    backoff = min(config.longest_s, config.first_s * 2.0 ** (number - 1)) * rng.uniform(0.5, 1.0)
    return backoff if asked is None else max(backoff, min(asked, config.longest_retry_after_s))


def priced(usage: Usage, prices: Prices | None) -> Usage:
    """The usage with its cost, if prices are known."""
    return usage if prices is None else usage.model_copy(update={"cost_usd": prices.cost(usage)})


def redact(text: str, key: str) -> str:
    """`text` with the key, every run of 8 or more characters of it, and masked forms (`sk-ab***wxyz`) replaced.

    Meant for error messages and logs.
    """
    if len(key) < MIN_KEY or not text:
        return text
    return _without_masked(_without_runs(text.replace(key, MARK), key, MIN_PART), key)


def _redact_answer(text: str, key: str) -> str:
    """A model's `text` without the key or long runs of it; dummies and short runs stay, as they may be intended."""
    return text if len(key) < MIN_SECRET else _without_runs(text.replace(key, MARK), key, MIN_SECRET)


def _without_runs(text: str, key: str, size: int) -> str:
    """`text` with each maximal run of `size` characters or more that also occurs in the key replaced."""
    if len(key) < size:
        return text
    parts = {key[start : start + size] for start in range(len(key) - size + 1)}
    pieces: list[str] = []
    position = 0
    while position < len(text):
        if text[position : position + size] not in parts:
            pieces.append(text[position])
            position += 1
            continue
        end = position + size
        while end < len(text) and text[end - size + 1 : end + 1] in parts:
            end += 1
        pieces.append(MARK)
        position = end
    return "".join(pieces)


def _without_masked(text: str, key: str) -> str:
    """`text` without forms such as `sk-ab***wxyz`: a beginning of the key, a mask, an end of it, or only one end."""
    word = r"[\w\-]*"

    def hidden(match: re.Match[str]) -> str:
        head, tail = match["head"], match["tail"]
        begins = len(head) >= MIN_END and key.startswith(head)
        ends = len(tail) >= MIN_END and key.endswith(tail)
        return MARK if begins or ends else match[0]

    return re.sub(f"(?P<head>{word}){_MASK}(?P<tail>{word})", hidden, text)

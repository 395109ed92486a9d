"""What every model provider's policy needs: retries, and a key that is never shown."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Protocol, TypeVar

import httpx2
from pydantic import ValidationError

from gumshoe.collect.policies.providers.redact import redact, redact_answer
from gumshoe.collect.policies.providers.retry import (
    Transient,
    is_overflow,
    is_transient,
    parse_retry_after,
    with_retries,
)
from gumshoe.collect.policy_config import RetryConfig
from gumshoe.errors import ContextOverflow, PolicyError
from gumshoe.records import Completion

__all__ = ["Provider", "StatusError"]

SHOWN = 500
READ = 4000
T = TypeVar("T")


class StatusError(Protocol):
    """An SDK's error for a status other than success."""

    status_code: int
    response: httpx2.Response


class Provider:
    """One server, asked in one episode.

    Args:
        name: the model, for messages.
        url: the server, for messages.
        key: never shown.
        retry: retries of failed requests.
        seed: chooses the jitter.
        pause: waits the given number of seconds between tries.
    """

    def __init__(
        self,
        name: str,
        url: str,
        *,
        key: str,
        retry: RetryConfig,
        seed: int,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._name = name
        self._url = url
        self._key = key
        self._retry = retry
        self._rng = random.Random(seed)
        self._pause = pause

    def request(self, attempt: Callable[[], T]) -> T:
        """What `attempt` returns, tried again while it raises Transient. Raises PolicyError."""
        return with_retries(
            lambda: self._one_line(attempt),
            self._retry,
            what=f"a completion of {self._name} at {self._url}",
            rng=self._rng,
            pause=self._pause,
        )

    def refused(self, error: StatusError, *, overflow: frozenset[int], code: str | None = None) -> Exception:
        """What a status other than success means: Transient, ContextOverflow or PolicyError."""
        said = self.shown(str(error))
        # An error in the middle of a stream comes with the status of its beginning, 200.
        if is_transient(error.status_code) or error.status_code < 400:
            return Transient(said, parse_retry_after(error.response.headers.get("retry-after")))
        if error.status_code in overflow and is_overflow(f"{code} {said}"):
            return ContextOverflow(f"the conversation no longer fits {self._name}: {said}")
        return PolicyError(f"{self._url} refused the request for {self._name}: {said}")

    def shown(self, text: str) -> str:
        """What a provider said, on one line, shortened, without the key."""
        return redact(" ".join(text[:READ].split()), self._key)[:SHOWN]

    def _one_line(self, attempt: Callable[[], T]) -> T:
        try:
            return attempt()
        except Transient as error:
            raise Transient(self.shown(str(error)), error.retry_after) from None
        except httpx2.HTTPError as error:
            raise Transient(self.shown(f"the answer broke off: {error or type(error).__name__}")) from None
        except (ValidationError, RecursionError) as error:
            raise Transient(self.shown(f"the answer cannot be stored: {error}")) from None

    def stored(self, completion: Completion) -> Completion:
        """The completion as it may be stored: without the key. Raises ValidationError if JSON cannot carry it."""
        return Completion.model_validate_json(redact_answer(completion.model_dump_json(), self._key))

"""Retries: exponential backoff with full jitter, or the delay in a server's `Retry-After`."""

from __future__ import annotations

import email.utils
import logging
import random
import time
from collections.abc import Callable
from typing import TypeVar

import tenacity

from gumshoe.collect.policy_config import RetryConfig
from gumshoe.errors import PolicyError

__all__ = ["Transient", "is_overflow", "is_transient", "parse_retry_after", "with_retries"]

log = logging.getLogger(__name__)
RETRIED_STATUS = frozenset({408, 409, 425, 429})
OVERFLOW_SIGNS = (
    "context_length_exceeded",
    "maximum context length",
    "context window",
    "max_model_len",
    "too long",
    "request_too_large",
)
T = TypeVar("T")


class Transient(Exception):
    """A failure that may pass. `retry_after` is the wait in seconds that the server asked for."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


def with_retries(
    attempt: Callable[[], T], config: RetryConfig, *, what: str, rng: random.Random, pause: Callable[[float], None]
) -> T:
    """Calls `attempt` until it returns. Raises PolicyError after `config.attempts` failures.

    Args:
        attempt: raises Transient for a failure that is worth another try.
        config: how often, and how long to wait between tries.
        what: what was tried, for the error.
        rng: source of the jitter.
        pause: waits the given number of seconds; may raise to give up early.
    """

    def wait(state: tenacity.RetryCallState) -> float:
        return _wait(state.attempt_number, _failure(state).retry_after, config, rng)

    def report(state: tenacity.RetryCallState) -> None:
        log.info("%s failed, next try in %.1f s: %s", what, state.upcoming_sleep, _failure(state))

    retrying = tenacity.Retrying(
        retry=tenacity.retry_if_exception_type(Transient),
        stop=tenacity.stop_after_attempt(config.attempts),
        wait=wait,
        sleep=pause,
        before_sleep=report,
        reraise=True,
    )
    try:
        return retrying(attempt)
    except Transient as error:
        raise PolicyError(f"{what} failed {config.attempts} times, last with: {error}") from None


def _failure(state: tenacity.RetryCallState) -> Transient:
    error = state.outcome.exception() if state.outcome is not None else None
    assert isinstance(error, Transient)
    return error


def is_transient(status: int) -> bool:
    """Whether an answer with this HTTP status is worth another try."""
    return status in RETRIED_STATUS or status >= 500


def is_overflow(said: str) -> bool:
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

"""Per-test outcomes as our plugins write them in the sandbox, where any program can write to the same file."""

from __future__ import annotations

import io
from collections.abc import Mapping

from pydantic import ValidationError

from gumshoe.records import TestOutcome

__all__ = ["NO_TRACEBACKS", "SHOW_OUTCOMES", "pytest_options", "read_outcomes"]

NO_TRACEBACKS = "--tb=no"
"""The option with which pytest prints no tracebacks. Its plugins, ours among them, know of failures all the same."""

SHOW_OUTCOMES = ("eval", "reproduce")
"""The tools that show the outcome of each test."""
FILE_BYTES, LINE_BYTES = 16 << 20, 64 << 10
UNREADABLE_LINES = 100


def pytest_options(environment: Mapping[str, str], *options: str) -> str:
    """What PYTEST_ADDOPTS has to be so that options are added to those that are set."""
    return " ".join(filter(None, (environment.get("PYTEST_ADDOPTS"), *options)))


def read_outcomes(data: bytes) -> tuple[TestOutcome, ...]:
    """The outcomes in a file of JSON lines, the last one of each test.

    A line that was cut off, or is no outcome of at most 64 KiB, is passed over; after 100 of those and after 16 MiB the
    rest is not read.
    """
    outcomes: dict[str, TestOutcome] = {}
    unreadable = 0
    for line in io.BytesIO(data[:FILE_BYTES]):
        try:
            outcome = TestOutcome.model_validate_json(line if len(line) <= LINE_BYTES else b"")
            outcomes[outcome.id] = outcome
        except ValidationError:
            unreadable += 1
            if unreadable > UNREADABLE_LINES:
                break
    return tuple(outcomes.values())

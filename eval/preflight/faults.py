"""Collects what is wrong, so that all of it is reported at once."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from gumshoe.errors import ConfigError, GumshoeError

__all__ = ["Faults"]


class Faults:
    """The errors of several checks. Each line of a message is a fault of its own; the same line counts once."""

    def __init__(self) -> None:
        self._errors: list[GumshoeError] = []

    @contextmanager
    def collect(self) -> Generator[None]:
        """Keeps a GumshoeError for later and goes on after the block."""
        try:
            yield
        except GumshoeError as error:
            self._errors.append(error)

    def report(self) -> None:
        """Raises what was collected, if anything: a single fault as it is, several as one ConfigError."""
        lines = list(dict.fromkeys(line for error in self._errors for line in str(error).splitlines()))
        if len(lines) > 1:
            listed = "".join(f"\n  {line}" for line in lines)
            raise ConfigError(f"{len(lines)} problems, so nothing was run:{listed}")
        if lines:
            raise self._errors[0]

"""The progress of an arm: one updating line on a terminal, an occasional line elsewhere."""

from __future__ import annotations

import time
from typing import IO

from gumshoe.collect.run.control import Control
from gumshoe.eval.serve import ModelServer
from gumshoe.records import Trajectory

__all__ = ["ArmProgress"]

PLAIN_EVERY_S = 10.0


class ArmProgress:
    """Shows one arm's progress.

    Args:
        title: the arm's name.
        control: counts the steps.
        stream: where it is shown.
    """

    def __init__(self, title: str, control: Control, stream: IO[str]) -> None:
        self._title = title
        self._control = control
        self._stream = stream
        self._planned = self._done = self._width = 0
        self._began = self._last = time.monotonic()

    def begun(self, planned: int, before: int) -> None:
        """Takes in how many episodes are planned, and how many of them were finished before."""
        self._planned, self._done = planned, before
        self._began = self._last = time.monotonic()
        left = "all finished before" if planned == before else f"{planned - before} episodes"
        self._say(f"{self._title}: {left}")

    def serving(self, server: ModelServer) -> None:
        """The arm's model is served."""
        took = time.monotonic() - self._began
        self._say(f"{self._title}: {server.folder} served by {server.backend} after {took:.0f} s, log {server.log}")

    def done(self, trajectory: Trajectory) -> None:
        """Another episode is finished."""
        self._done += 1
        if self._done == self._planned:
            self._clear()
            self._say(f"{self._title}: {self._line()}")

    def tick(self) -> None:
        """Redraws the line on a terminal; elsewhere, prints one when it is due."""
        if self._stream.isatty():
            self._overwrite(f"{self._title}: {self._line()}")
        elif self._done < self._planned and time.monotonic() - self._last >= PLAIN_EVERY_S:
            self._last = time.monotonic()
            self._say(f"{self._title}: {self._line()}")

    def _line(self) -> str:
        elapsed = time.monotonic() - self._began
        return f"{self._done}/{self._planned} episodes, {elapsed:.0f} s"

    def _clear(self) -> None:
        if self._stream.isatty():
            self._overwrite("")
            self._overwrite("")

    def _overwrite(self, line: str) -> None:
        """Shows `line` in the place of the one before."""
        self._stream.write(f"\r{line.ljust(self._width)}")
        self._stream.flush()
        self._width = len(line)

    def _say(self, line: str) -> None:
        self._stream.write(f"{line}\n")
        self._stream.flush()

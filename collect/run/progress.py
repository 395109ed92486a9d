"""The progress of a run: a live display on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time

from rich.console import Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from gumshoe.collect.run.control import Control
from gumshoe.console import Console
from gumshoe.records import Trajectory

__all__ = ["ProgressDisplay"]

PLAIN_EVERY_S = 10.0


class ProgressDisplay:
    """Shows done, resolved, failed, steps and tokens per second, money, time left and what each worker is doing.

    Of a run with one episode, it shows what that does: every turn in a line of its own, or the latest on a terminal.

    Args:
        planned: episodes of the run.
        before: those that were finished before this process.
        control: where the counts are.
        console: where it is shown; default stderr.
    """

    def __init__(self, planned: int, before: int, control: Control, console: Console | None = None) -> None:
        self._planned = planned
        self._whole = before
        self._before = before
        self._done = 0
        self._branches = 0
        self._control = control
        self._resolved = 0
        self._scored = 0
        self._console = console or Console(file=sys.stderr, highlight=False)
        self._live: Live | None = None
        self._last_plain = time.monotonic()
        self._stop_announced = False
        self._bar = Progress(
            TextColumn("collect"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), console=self._console
        )
        self._task = self._bar.add_task("collect", total=planned, completed=before)

    def __enter__(self) -> ProgressDisplay:
        if self._console.is_terminal:
            self._live = Live(self._render(), console=self._console, transient=True, auto_refresh=False)
            self._live.start()
        elif self._planned == 1:
            self._control.on_step = self._print
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def done(self, trajectory: Trajectory, is_whole: bool) -> None:
        """Counts a finished trajectory; `is_whole` says that all episodes of its tree are finished."""
        self._done += 1
        self._whole += is_whole
        self._branches += trajectory.branch is not None
        self._scored += trajectory.resolved is not None
        self._resolved += trajectory.resolved is True

    def tick(self) -> None:
        """Draws, or prints a line if one is due."""
        if self._live is not None:
            self._live.update(self._render(), refresh=True)
            return
        if self._stopping() and not self._stop_announced:
            self._stop_announced = True
            self._print(self._stopping())
        if self._planned > 1 and time.monotonic() - self._last_plain >= PLAIN_EVERY_S:
            self._last_plain = time.monotonic()
            self._print(f"{self._whole}/{self._planned} {self.line()}{self._left()}")

    def line(self) -> str:
        """The counts in one line."""
        elapsed = max(self._control.elapsed_s, 1e-9)
        spent = self._control.spent
        parts = [f"{self._done / elapsed * 60:.1f} episodes/min"]
        if self._branches:
            parts.append(f"{self._branches} branches")
        if self._scored:
            parts.append(f"{self._resolved} of {self._scored} resolved")
        if self._control.failures:
            parts.append(f"failed tries: {self._control.failures}")
        parts.append(f"{self._control.steps / elapsed:.1f} steps/s")
        if spent.tokens:
            parts.append(f"{spent.tokens / elapsed:.0f} tokens/s")
        if spent.cost_usd is not None:
            parts.append(f"${spent.cost_usd:.2f}")
        return ", ".join(parts)

    def _stopping(self) -> str:
        """The message to a user who has pressed Ctrl-C."""
        asked = self._control.finishing and not self._control.aborting and self._control.exhausted is None
        return "finishing the episodes at hand; Ctrl-C again stops at once" if asked else ""

    def _left(self) -> str:
        """The time left at the speed so far; nothing before there is a speed."""
        now = self._whole - self._before
        if not now:
            return ""
        seconds = round(self._control.elapsed_s / now * (self._planned - self._whole))
        return f", {seconds // 60} min {seconds % 60} s left"

    def _print(self, line: str) -> None:
        self._console.print(Text(line), soft_wrap=True)

    def _render(self) -> Group:
        self._bar.update(self._task, completed=self._whole)
        stopping = [Text(self._stopping())] if self._stopping() else []
        doing = [
            Text(f"  {line}", overflow="ellipsis", no_wrap=True) for _, line in sorted(self._control.doing.items())
        ]
        if self._planned == 1:
            return Group(*(doing or [Text("  starting")]), *stopping)
        return Group(self._bar, Text(self.line()), *doing, *stopping)

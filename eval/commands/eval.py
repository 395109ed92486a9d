"""`gumshoe eval CONFIG`: run policies on held-out tasks, score them, compare them."""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from gumshoe.config import load_config
from gumshoe.plugins import search_beside

if TYPE_CHECKING:
    from gumshoe.eval.arms.arm import Hooks
    from gumshoe.eval.serve import ModelServer
    from gumshoe.records import Trajectory

__all__ = ["configure", "run"]

PLAIN_EVERY_S = 10.0

EXAMPLES = """\
examples:
  gumshoe eval configs/eval/heuristics.yaml
  gumshoe eval configs/eval/seeker.yaml -p vars.train=runs/train/smollm2 -p tasks.source=runs/tasks
  gumshoe eval CONFIG -p out=runs/eval/try -p tasks.limit=20 -p workers=8

Run the same command again to resume a stopped evaluation; finished episodes are not run again.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the command line."""
    parser.epilog = EXAMPLES
    parser.add_argument("config", type=Path, help="YAML file (see configs/eval)")
    parser.add_argument("-p", "--param", action="append", default=[], metavar="KEY=VALUE", help="override a value")


def run(arguments: argparse.Namespace) -> int:
    """Evaluates. 0: all done; 1: some episodes were given up, or the official harness failed; 130: interrupted."""
    from gumshoe.collect.run.control import Control, stop_on_signals
    from gumshoe.console import Console
    from gumshoe.eval.config import EvalConfig
    from gumshoe.eval.evaluate import evaluate
    from gumshoe.eval.score.tables import print_table
    from gumshoe.eval.view.static import write_beside

    config = load_config(EvalConfig, arguments.config, arguments.param)
    search_beside(arguments.config)
    control = Control()
    with stop_on_signals(control), _quiet_http():
        evaluation = evaluate(config, control, _hooks, _say)
        page = write_beside(Path(config.out), {task.id: oracle.gold_patch for task, oracle in evaluation.tasks})
    print_table(evaluation.summary, Console(width=None if sys.stdout.isatty() else 118))
    for path in (*evaluation.files.values(), page):
        print(path)
    if evaluation.stopped is not None:
        print("stopped; run the same command again to resume", file=sys.stderr)
        return 130
    if evaluation.failure is not None:
        print(
            f"gumshoe eval: {evaluation.failure}; its other verdicts are missing in the results above", file=sys.stderr
        )
        return 1
    return 1 if any(arm.failed for arm in evaluation.summary.arms) else 0


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


@contextmanager
def _quiet_http() -> Generator[None]:
    """Keeps the line that the SDK logs for each request off the terminal."""
    loggers = [logging.getLogger(name) for name in ("httpx", "httpx2", "openai")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _hooks(title: str) -> Hooks:
    """Shows on stderr how an arm is getting on."""
    from gumshoe.eval.arms.arm import Hooks

    progress = ArmProgress(title, sys.stderr)
    return Hooks(serving=progress.serving, begun=progress.begun, done=progress.done, tick=progress.tick)


class ArmProgress:
    """Shows one arm's progress.

    On a terminal it is one line that is redrawn; elsewhere, a line every ten seconds.

    Args:
        title: the arm's name.
        stream: where it is shown.
    """

    def __init__(self, title: str, stream: IO[str]) -> None:
        self._title = title
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

"""`gumshoe eval CONFIG`: run policies on held-out tasks, score them, compare them."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from gumshoe.config import load_config
from gumshoe.plugins import search_beside

if TYPE_CHECKING:
    from gumshoe.collect.run.control import Control
    from gumshoe.eval.arms.arm import Hooks

__all__ = ["configure", "run"]

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
    from gumshoe.eval.results.tables import print_table
    from gumshoe.eval.view.static import write_beside

    config = load_config(EvalConfig, arguments.config, arguments.param)
    search_beside(arguments.config)
    control = Control()
    with stop_on_signals(control), _quiet_http():
        evaluation = evaluate(config, control, _hooks(control), _say)
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


def _hooks(control: Control) -> Callable[[str], Hooks]:
    """Shows on stderr how an arm is getting on: a line when it begins, and one every ten seconds."""
    from gumshoe.eval.arms.arm import Hooks
    from gumshoe.eval.commands.progress import ArmProgress

    def hooks(title: str) -> Hooks:
        progress = ArmProgress(title, control, sys.stderr)
        return Hooks(serving=progress.serving, begun=progress.begun, done=progress.done, tick=progress.tick)

    return hooks


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

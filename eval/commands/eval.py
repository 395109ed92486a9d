"""`gumshoe eval CONFIG` and `gumshoe compare RUN RUN`: policies on held-out tasks, and how two evaluations differ."""

from __future__ import annotations

import argparse
import json
import logging
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from gumshoe.config import load_config
from gumshoe.errors import ConfigError, DatasetError
from gumshoe.plugins import search_beside
from gumshoe.standard_streams import StatusLine
from gumshoe.text import plural, unknown_choice

if TYPE_CHECKING:
    from rich.table import Table

    from gumshoe.console import Console
    from gumshoe.eval.arms.arm import Hooks
    from gumshoe.eval.records import Comparison, Result
    from gumshoe.eval.serve import ModelServer

PLAIN_EVERY_S = 10.0
PLAIN_SHARE = 0.1
"""The least share of the time so far between two lines, so that a long run does not fill its log."""

EVAL_EXAMPLES = """\
examples:
  gumshoe eval configs/eval/heuristics.yaml
  gumshoe eval configs/eval/seeker.yaml -p vars.train=runs/train/smollm2 -p tasks.source=runs/tasks
  gumshoe eval CONFIG -p out=runs/eval/try -p tasks.limit=20 -p workers=8

Run the same command again to resume a stopped evaluation; finished episodes are not run again.
"""


def configure_eval(parser: argparse.ArgumentParser) -> None:
    """Declares the command line."""
    parser.epilog = EVAL_EXAMPLES
    parser.add_argument("config", type=Path, help="YAML file (see configs/eval)")
    parser.add_argument("-p", "--param", action="append", default=[], metavar="KEY=VALUE", help="override a value")


def run_eval(arguments: argparse.Namespace) -> int:
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
    for path in (*evaluation.files, page):
        print(path)
    if evaluation.stopped is not None:
        _say("stopped; run the same command again to resume")
        return 130
    if evaluation.failure is not None:
        _say(f"gumshoe eval: {evaluation.failure}; its other verdicts are missing in the results above")
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
    """Shows one arm's progress: on a terminal one line that is redrawn, elsewhere a line now and then."""

    def __init__(self, title: str, stream: TextIO) -> None:
        self._title = title
        self._status = StatusLine(stream)
        self._planned = self._done = 0
        self._began = self._last = time.monotonic()

    def begun(self, planned: int, before: int) -> None:
        """Takes in how many episodes are planned, and how many of them were finished before."""
        self._planned, self._done = planned, before
        self._began = self._last = time.monotonic()
        self._say("all finished before" if planned == before else plural(planned - before, "episode"))

    def serving(self, server: ModelServer) -> None:
        """The arm's model is served."""
        took = time.monotonic() - self._began
        self._say(f"{server.folder} served by {server.prepared.backend} after {took:.0f} s, log {server.log}")

    def done(self) -> None:
        """Another episode is finished."""
        self._done += 1
        if self._done == self._planned:
            self._say(self._counts())

    def tick(self) -> None:
        """Redraws the line on a terminal; elsewhere, prints one when it is due. Once all is done, the line stays."""
        if self._done == self._planned:
            return
        now = time.monotonic()
        if self._status.is_terminal or now - self._last >= max(PLAIN_EVERY_S, PLAIN_SHARE * (now - self._began)):
            self._last = now
            self._status.show(f"{self._title}: {self._counts()}")

    def _counts(self) -> str:
        return f"{self._done}/{self._planned} episodes, {time.monotonic() - self._began:.0f} s"

    def _say(self, line: str) -> None:
        self._status.clear()
        self._status.show(f"{self._title}: {line}")
        self._status.keep()


COMPARE_EXAMPLES = """\
examples:
  gumshoe compare runs/eval/monday runs/eval/friday              arms of the same name, second minus first
  gumshoe compare runs/eval/a:finetuned runs/eval/b:teacher      one arm of each
  gumshoe compare RUN RUN --metric solved --json

RUN is a folder that `gumshoe eval` wrote. The interval is a bootstrap interval of the mean paired difference; p is from
McNemar's exact test, for scores that are 0 or 1.
"""


def configure_compare(parser: argparse.ArgumentParser) -> None:
    """Declares the command line."""
    parser.epilog = COMPARE_EXAMPLES
    parser.add_argument("before", metavar="RUN", help="folder of an evaluation, or FOLDER:ARM")
    parser.add_argument("after", metavar="RUN", help="evaluation to compare with it, in the same form")
    parser.add_argument("--metric", action="append", help="only this score, any that the results hold (repeatable)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the bootstrap intervals (default 0)")
    parser.add_argument("--json", action="store_true", help="one JSON object per line instead of a table")


def run_compare(arguments: argparse.Namespace) -> int:
    """Prints the differences. Raises ConfigError and DatasetError."""
    from gumshoe.console import Console

    if arguments.seed < 0:
        raise ConfigError(f"--seed {arguments.seed}: give 0 or more")
    found = _compare(arguments.before, arguments.after, arguments.metric, arguments.seed)
    if arguments.json:
        for one in found:
            print(json.dumps(one.model_dump(mode="json")))
    else:
        _print_comparisons(found, Console())
    return 0


def _compare(first: str, second: str, metrics: Sequence[str] | None, seed: int) -> list[Comparison]:
    from gumshoe.eval.score.measures import Bootstrap, compare, groups_of
    from gumshoe.eval.score.metrics import BY_NAME

    pairs = _pair_arms(_read(first), _read(second))
    if not pairs:
        raise ConfigError(f"{first} and {second} have no arm in common: name one of each, as FOLDER:ARM")
    # What the results hold besides: metrics of the configs' own, and what came with the episodes.
    measured = {name for pair in pairs for results in pair for result in results for name in result.scores}
    known = [*BY_NAME, *sorted(measured - BY_NAME.keys())]
    unknown = next((metric for metric in metrics or () if metric not in known), None)
    if unknown is not None:
        raise ConfigError(unknown_choice("metric", unknown, known))
    found = (
        compare(after, before, group, metric, Bootstrap(seed))
        for before, after in pairs
        for group in groups_of(after)
        for metric in metrics or BY_NAME
    )
    comparisons = [one for one in found if one is not None]
    if not comparisons:
        raise ConfigError(f"{first} and {second} have no task in common on which this was measured")
    return comparisons


def _read(wanted: str) -> dict[str, list[Result]]:
    """The results of an evaluation by arm; of one arm only for FOLDER:ARM. Raises DatasetError and ConfigError."""
    from gumshoe.eval.records import Result
    from gumshoe.storage import read_records

    folder, _, arm = wanted.partition(":") if not Path(wanted).is_dir() else (wanted, "", "")
    file = Path(folder) / "results.jsonl"
    by_arm: dict[str, list[Result]] = {}
    if not file.is_file():
        raise DatasetError(f"{folder} is not an evaluation: it has no results.jsonl (create one with gumshoe eval)")
    for result in read_records(file, Result):
        by_arm.setdefault(result.arm, []).append(result)
    if arm and arm not in by_arm:
        raise ConfigError(f"{folder} has no arm {arm!r}: it has {', '.join(by_arm)}")
    return {arm: by_arm[arm]} if arm else by_arm


def _pair_arms(
    before: dict[str, list[Result]], after: dict[str, list[Result]]
) -> list[tuple[list[Result], list[Result]]]:
    """Pairs arms of the same name; if each side has only one arm, pairs those two."""
    if len(before) == len(after) == 1:
        return list(zip(before.values(), after.values(), strict=True))
    return [(results, after[name]) for name, results in before.items() if name in after]


def _print_comparisons(found: Sequence[Comparison], console: Console) -> None:
    """A table for each pair of arms and group of tasks, narrow enough for 80 columns."""
    from gumshoe.eval.score.tables import named

    for (arm, baseline, group), ones in groupby(found, lambda one: (one.arm, one.baseline, one.group)):
        arms = arm if arm == baseline else f"{arm} against {baseline}"
        console.print(f"\n{arms}, {named(group)}", style="bold", highlight=False)
        console.print(_comparison_table(list(ones)))


def _comparison_table(found: Sequence[Comparison]) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("metric", no_wrap=True)
    for title in ("difference", "95% interval", "pairs", "better/worse", "p"):
        table.add_column(title, justify="right", no_wrap=True)
    for one in found:
        low, high = one.difference.low or 0.0, one.difference.high or 0.0
        table.add_row(
            one.metric,
            _signed(one.difference.value or 0.0),
            f"{_signed(low)} to {_signed(high)}",
            str(one.difference.count),
            f"{one.better}/{one.worse}",
            "" if one.mcnemar_p is None else "< 0.001" if one.mcnemar_p < 0.001 else f"{one.mcnemar_p:.3f}",
        )
    return table


def _signed(value: float) -> str:
    return f"{value:+,.0f}" if abs(value) >= 100 else f"{value:+.3f}"

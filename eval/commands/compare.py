"""`gumshoe compare RUN RUN`: paired differences between the arms of two evaluations, on the tasks that both have."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from gumshoe.errors import ConfigError, DatasetError

if TYPE_CHECKING:
    from rich.table import Table

    from gumshoe.console import Console
    from gumshoe.eval.records import Comparison, Result

__all__ = ["configure", "run"]

EXAMPLES = """\
examples:
  gumshoe compare runs/eval/monday runs/eval/friday              arms of the same name, second minus first
  gumshoe compare runs/eval/a:finetuned runs/eval/b:teacher      one arm of each
  gumshoe compare RUN RUN --metric solved --json

RUN is a folder that `gumshoe eval` wrote. The interval is a bootstrap interval of the mean paired difference; p is from
McNemar's exact test, for scores that are 0 or 1.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the command line."""
    parser.epilog = EXAMPLES
    parser.add_argument("before", metavar="RUN", help="folder of an evaluation, or FOLDER:ARM")
    parser.add_argument("after", metavar="RUN", help="evaluation to compare with it, in the same form")
    parser.add_argument("--metric", action="append", help="only this score (repeatable)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the bootstrap intervals (default 0)")
    parser.add_argument("--json", action="store_true", help="one JSON object per line instead of a table")


def run(arguments: argparse.Namespace) -> int:
    """Prints the differences. Raises ConfigError and DatasetError."""
    from gumshoe.console import Console

    if arguments.seed < 0:
        raise ConfigError(f"--seed {arguments.seed}: give 0 or more")
    found = _compare(arguments.before, arguments.after, arguments.metric, arguments.seed)
    if arguments.json:
        for one in found:
            print(json.dumps(one.model_dump(mode="json")))
    else:
        _show(found, Console())
    return 0


def _compare(before: str, after: str, metrics: Sequence[str] | None, seed: int) -> list[Comparison]:
    from gumshoe.eval.score.measures import BY_NAME, compare, groups_of

    pairs = _pair_arms(_read(before), _read(after))
    if not pairs:
        raise ConfigError(f"{before} and {after} have no arm in common: name one of each, as FOLDER:ARM")
    unknown = next((metric for metric in metrics or () if metric not in BY_NAME), None)
    if unknown is not None:
        raise ConfigError(f"no metric {unknown!r}: there are {', '.join(BY_NAME)}")
    found = (
        compare(theirs, ours, group, metric, seed=seed, resamples=2000)
        for ours, theirs in pairs
        for group in groups_of(theirs)
        for metric in metrics or BY_NAME
    )
    comparisons = [one for one in found if one is not None]
    if not comparisons:
        raise ConfigError(f"{before} and {after} have no task in common on which this was measured")
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


def _show(found: Sequence[Comparison], console: Console) -> None:
    """A table for each pair of arms and group of tasks, narrow enough for 80 columns."""
    from gumshoe.eval.score.measures import named

    for (arm, baseline, group), ones in groupby(found, lambda one: (one.arm, one.baseline, one.group)):
        arms = arm if arm == baseline else f"{arm} against {baseline}"
        console.print(f"\n{arms}, {named(group)}", style="bold", highlight=False)
        console.print(_table(list(ones)))


def _table(found: Sequence[Comparison]) -> Table:
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

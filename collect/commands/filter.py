"""`gumshoe filter`: keep the trajectories that make good data."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from gumshoe.collect.data import filters
from gumshoe.collect.data.filters import Rule, make_rule, rejecting_rule
from gumshoe.collect.data.store import read_trajectories, write_trajectories
from gumshoe.errors import ConfigError, DatasetError
from gumshoe.records import Trajectory
from gumshoe.storage import new_folder, write_atomic

__all__ = ["configure", "filter_runs", "run"]

EPILOG = """\
examples:
  gumshoe filter runs/a --out runs/a-good --rule resolved --rule loops --rule leakage
  gumshoe filter runs/a runs/b --out runs/ab --rule pass_rate=0.1..0.9 --rule exclude=tasks/eval

Rules are applied in the order given; each dropped trajectory is counted for the first rule that rejects it. The result
is a run folder for gumshoe export, with the counts in filter.json.

"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.epilog = EPILOG + (filters.__doc__ or "").split("\n\n", 1)[1]
    parser.add_argument("runs", nargs="+", type=Path, help="run folders")
    parser.add_argument("--out", type=Path, required=True, help="output folder")
    parser.add_argument("--rule", action="append", default=[], metavar="NAME[=SETTING]", help="a rule; repeatable")


def run(arguments: argparse.Namespace) -> int:
    """Filters and prints what was dropped, and why."""
    if not arguments.rule:
        raise ConfigError(f"give at least one --rule: {', '.join(filters.rule_names())}")
    kept, dropped = filter_runs(arguments.runs, arguments.out, [make_rule(text) for text in arguments.rule])
    print(f"{arguments.out}: {kept} of {kept + dropped.total()} kept")
    for name in arguments.rule:
        print(f"  {dropped[name]:>6} dropped by {name}")
    return 0


def filter_runs(runs: Sequence[Path], out: Path, rules: Sequence[Rule]) -> tuple[int, Counter[str]]:
    """Writes what all rules keep to `out`; returns how many trajectories that is, and what each rule dropped.

    Raises:
        ConfigError: `out` already exists.
        DatasetError: a run is missing or broken, or none of them has a finished episode.
    """
    if out.exists():
        raise ConfigError(f"{out} already exists: choose another --out")
    for rule in rules:
        if rule.survey is not None:
            for trajectory in _all(runs):
                rule.survey(trajectory)
    dropped: Counter[str] = Counter()

    def accepted() -> Iterator[Trajectory]:
        for trajectory in _all(runs):
            rejected_by = rejecting_rule(rules, trajectory)
            if rejected_by is None:
                yield trajectory
            else:
                dropped[rejected_by] += 1

    with new_folder(out) as fresh:
        kept = write_trajectories(fresh, accepted())
        if not kept and not dropped:
            raise DatasetError(f"no finished episode in {', '.join(map(str, runs))}: there is nothing to filter")
        account = {
            "runs": [str(run) for run in runs],
            "kept": kept,
            "dropped": {rule.name: dropped[rule.name] for rule in rules},
        }
        write_atomic(fresh / "filter.json", json.dumps(account, indent=2) + "\n")
    return kept, dropped


def _all(runs: Sequence[Path]) -> Iterator[Trajectory]:
    for run_folder in runs:
        yield from read_trajectories(run_folder)

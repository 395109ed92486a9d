"""`gumshoe export`: turn runs into a Hugging Face dataset."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from gumshoe.collect.commands.status import unfinished_trees
from gumshoe.collect.data.export.export import DEFAULT_VIEWS, VIEWS, export_runs
from gumshoe.collect.data.export.trees import TREE_VIEWS
from gumshoe.text import plural

__all__ = ["configure", "run"]

EPILOG = """\
examples:
  gumshoe export runs/collect/demo --out datasets/demo
  gumshoe export runs/a runs/b --out datasets/ab --view seeker --test-share 0.2

Episodes that did not resolve their task are left out unless --unresolved is given.
The dataset loads with  datasets.load_dataset("datasets/demo", "seeker").
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.epilog = EPILOG
    parser.add_argument("runs", nargs="+", type=Path, help="run folders")
    parser.add_argument("--out", type=Path, required=True, help="dataset folder; an earlier export is replaced")
    parser.add_argument(
        "--view", action="append", choices=VIEWS, help="kind of rows to write; repeatable (default: agent and seeker)"
    )
    parser.add_argument(
        "--test-share", type=_share, default=0.1, help="share of projects in the test split (default: 0.1)"
    )
    parser.add_argument("--unresolved", action="store_true", help="also include episodes that are not resolved")
    parser.add_argument("--held-out-bugs", action="store_true", help="also include bugs held out for evaluation")
    parser.add_argument("--license", default="mit", help="license on the card (default: mit)")


def run(arguments: argparse.Namespace) -> int:
    """Exports and prints the counts."""
    result = export_runs(
        arguments.runs,
        arguments.out,
        views=tuple(dict.fromkeys(arguments.view or DEFAULT_VIEWS)),
        test_share=arguments.test_share,
        unresolved=arguments.unresolved,
        held_out_bugs=arguments.held_out_bugs,
        license=arguments.license,
    )
    print(arguments.out)
    for view, rows in result.rows.items():
        dropped = "".join(f"; left out: {count} {reason}" for reason, count in result.dropped[view].items())
        print(f"  {view:<7} {rows['train']} train, {rows['test']} test{dropped}")
    if result.rows.keys() & TREE_VIEWS:
        _note_unfinished(arguments.runs)
    return 0


def _note_unfinished(runs: Sequence[Path]) -> None:
    for run in runs:
        trees = unfinished_trees(run)
        if trees:
            print(
                f"note: {plural(trees, 'tree')} in {run} without all branches, so values there rest on fewer episodes: "
                "run `gumshoe collect` with the same config again to complete them",
                file=sys.stderr,
            )


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 1")
    return value

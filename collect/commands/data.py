"""`gumshoe filter`, `convert` and `export`: from the trajectories of runs to a dataset."""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from gumshoe.collect.commands.runs import unfinished_trees
from gumshoe.collect.data import filters
from gumshoe.collect.data.export.export import DEFAULT_VIEWS, VIEWS, export_runs
from gumshoe.collect.data.export.trees import TREE_VIEWS
from gumshoe.collect.data.filters import Rule, make_rule, rejecting_rule
from gumshoe.collect.data.formats import FORMATS, write_atif
from gumshoe.collect.data.store import Copies, read_trajectories, write_trajectories
from gumshoe.errors import ConfigError, DatasetError
from gumshoe.records import Trajectory
from gumshoe.storage import new_folder, read_records, write_atomic
from gumshoe.text import plural

FILTER_EXAMPLES = """\
examples:
  gumshoe filter runs/a --out runs/a-good --rule resolved --rule loops --rule leakage
  gumshoe filter runs/a runs/b --out runs/ab --rule pass_rate=0.1..0.9 --rule exclude=tasks/eval

Rules are applied in the order given; each dropped trajectory is counted for the first rule that rejects it. The result
is a run folder for gumshoe export, with the counts in filter.json.

"""


def configure_filter(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.epilog = FILTER_EXAMPLES + (filters.__doc__ or "").split("\n\n", 1)[1]
    parser.add_argument("runs", nargs="+", type=Path, help="run folders")
    parser.add_argument("--out", type=Path, required=True, help="output folder")
    parser.add_argument("--rule", action="append", default=[], metavar="NAME[=SETTING]", help="a rule; repeatable")


def run_filter(arguments: argparse.Namespace) -> int:
    """Filters and prints what was dropped, and why."""
    if not arguments.rule:
        raise ConfigError(f"give at least one --rule: {', '.join(filters.rule_forms())}")
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
            for trajectory in _trajectories_of(runs):
                rule.survey(trajectory)
    dropped: Counter[str] = Counter()

    def accepted() -> Iterator[Trajectory]:
        for trajectory in _trajectories_of(runs):
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


def _trajectories_of(runs: Sequence[Path]) -> Iterator[Trajectory]:
    for run_folder in runs:
        yield from read_trajectories(run_folder)


CONVERT_EXAMPLES = """\
examples:
  gumshoe convert runs/a --to atif --out atif/          one JSON file per trajectory
  gumshoe convert runs/a --to atif --out all.jsonl      one line per trajectory
  gumshoe convert atif/ --from atif --out runs/b        files, or folders of them; ATIF 1.0 to 1.8
  gumshoe convert *.traj --from swe-agent --out runs/swe
  gumshoe convert runs/ --from mini-swe-agent --out runs/mini     its .traj.json files
  gumshoe convert chats.jsonl --from messages --out runs/c    lines of {"messages": [...], "tools": [...]}
"""
ATIF_FILES = (".json", ".jsonl")


def configure_convert(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.epilog = CONVERT_EXAMPLES
    parser.add_argument(
        "sources",
        nargs="+",
        type=Path,
        help="with --to: runs, or trajectories.jsonl files; with --from: files or folders",
    )
    direction = parser.add_mutually_exclusive_group(required=True)
    direction.add_argument("--to", choices=["atif"], help="format to write")
    direction.add_argument("--from", dest="origin", choices=sorted(FORMATS), help="format to read")
    parser.add_argument("--out", type=Path, required=True, help="output folder, or a .json or .jsonl file for --to")


def run_convert(arguments: argparse.Namespace) -> int:
    """Converts trajectories and prints how many."""
    out: Path = arguments.out
    if out.exists() and any(out.iterdir() if out.is_dir() else [out]):
        raise ConfigError(f"{out} already exists: choose another --out")
    copies = Copies()
    if arguments.to:
        count = _write_atif(copies.leave_out(_trajectories_in(arguments.sources)), out)
    else:
        kind = FORMATS[arguments.origin]
        found = itertools.chain.from_iterable(kind.read_all(source) for source in arguments.sources)
        with new_folder(out) as fresh:
            count = write_trajectories(fresh, found)
    left_out = f"; left out: {copies.count} given more than once" if copies.count else ""
    print(f"{out}: {count} trajectories{left_out}")
    return 0


def _write_atif(trajectories: Iterator[Trajectory], out: Path) -> int:
    if out.suffix not in ATIF_FILES:
        with new_folder(out) as fresh:
            return write_atif(trajectories, fresh)
    out.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.") as scratch:
        fresh = Path(scratch) / out.name
        count = write_atif(trajectories, fresh)
        fresh.replace(out)
    return count


def _trajectories_in(sources: Sequence[Path]) -> Iterator[Trajectory]:
    """Those of run folders, and of files of trajectories."""
    for source in sources:
        yield from read_records(source, Trajectory) if source.is_file() else read_trajectories(source)


EXPORT_EXAMPLES = """\
examples:
  gumshoe export runs/collect/demo --out datasets/demo
  gumshoe export runs/a runs/b --out datasets/ab --view seeker --test-share 0.2

Episodes that did not resolve their task are left out unless --unresolved is given.
The dataset loads with  datasets.load_dataset("datasets/demo", "seeker").
"""


def configure_export(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.epilog = EXPORT_EXAMPLES
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


def run_export(arguments: argparse.Namespace) -> int:
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

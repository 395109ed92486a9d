"""`gumshoe convert`: trajectories to ATIF, and from ATIF and other formats."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from gumshoe.collect.data.interchange.files import FORMATS, write_atif
from gumshoe.collect.data.store import Copies, read_trajectories, write_trajectories
from gumshoe.errors import ConfigError
from gumshoe.records import Trajectory
from gumshoe.storage import new_folder, read_records

__all__ = ["configure", "run"]

EPILOG = """\
examples:
  gumshoe convert runs/a --to atif --out atif/          one JSON file per trajectory
  gumshoe convert runs/a --to atif --out all.jsonl      one line per trajectory
  gumshoe convert atif/ --from atif --out runs/b        files, or folders of them; ATIF 1.0 to 1.8
  gumshoe convert *.traj --from swe-agent --out runs/swe
  gumshoe convert runs/ --from mini-swe-agent --out runs/mini     its .traj.json files
  gumshoe convert chats.jsonl --from messages --out runs/c    lines of {"messages": [...], "tools": [...]}
"""
FILES = (".json", ".jsonl")


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.epilog = EPILOG
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


def run(arguments: argparse.Namespace) -> int:
    """Converts trajectories and prints how many."""
    out: Path = arguments.out
    if out.exists() and any(out.iterdir() if out.is_dir() else [out]):
        raise ConfigError(f"{out} already exists: choose another --out")
    copies = Copies()
    count = _write(_of_runs(arguments.sources, copies), out) if arguments.to else _read(arguments, out)
    left_out = f"; left out: {copies.count} given more than once" if copies.count else ""
    print(f"{out}: {count} trajectories{left_out}")
    return 0


def _write(trajectories: Iterator[Trajectory], out: Path) -> int:
    if out.suffix not in FILES:
        with new_folder(out) as fresh:
            return write_atif(trajectories, fresh)
    out.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.") as scratch:
        fresh = Path(scratch) / out.name
        count = write_atif(trajectories, fresh)
        fresh.replace(out)
    return count


def _read(arguments: argparse.Namespace, out: Path) -> int:
    kind = FORMATS[arguments.origin]
    found = itertools.chain.from_iterable(kind.read_all(source) for source in arguments.sources)
    with new_folder(out) as fresh:
        return write_trajectories(fresh, found)


def _of_runs(sources: Sequence[Path], copies: Copies) -> Iterator[Trajectory]:
    for source in sources:
        found = read_records(source, Trajectory) if source.is_file() else read_trajectories(source)
        yield from (trajectory for trajectory in found if not copies.is_copy(trajectory))

"""`gumshoe convert`: trajectories to ATIF, and from ATIF, SWE-agent or plain messages."""

from __future__ import annotations

import argparse
import json
import urllib.parse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from gumshoe.collect.interchange import from_atif, from_messages, from_swe_agent, to_atif
from gumshoe.collect.store import read_trajectories
from gumshoe.errors import ConfigError, DatasetError
from gumshoe.records import Trajectory
from gumshoe.storage import new_folder, read_json, read_jsonl, write_atomic

__all__ = ["configure", "run"]

EPILOG = """\
examples:
  gumshoe convert runs/a --to atif --out atif/          one JSON file a trajectory
  gumshoe convert atif/*.json --from atif --out runs/b
  gumshoe convert *.traj --from swe-agent --out runs/swe
  gumshoe convert chats.jsonl --from messages --out runs/c    lines of {"messages": [...], "tools": [...]}
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.epilog = EPILOG
    parser.add_argument("sources", nargs="+", type=Path, help="run folders (--to) or files (--from)")
    direction = parser.add_mutually_exclusive_group(required=True)
    direction.add_argument("--to", choices=["atif"], help="format to write")
    direction.add_argument("--from", dest="origin", choices=sorted(_READERS), help="format to read")
    parser.add_argument("--out", type=Path, required=True, help="output folder")


def run(arguments: argparse.Namespace) -> int:
    """Converts and says how many."""
    out: Path = arguments.out
    if out.exists() and any(out.iterdir() if out.is_dir() else [out]):
        raise ConfigError(f"{out} already exists: choose another --out")
    with new_folder(out) as fresh:
        if arguments.to:
            count = _write_atif(arguments.sources, fresh)
        else:
            count = _write_run(arguments.sources, arguments.origin, fresh)
    print(f"{out}: {count} trajectories")
    return 0


def _write_atif(runs: Sequence[Path], out: Path) -> int:
    count = 0
    for folder in runs:
        for trajectory in read_trajectories(folder):
            name = urllib.parse.quote(trajectory.id, safe="#")[:200]
            write_atomic(out / f"{name}.json", json.dumps(to_atif(trajectory), ensure_ascii=False, indent=1) + "\n")
            count += 1
    return count


def _write_run(files: Sequence[Path], origin: str, out: Path) -> int:
    found = (trajectory for file in files for trajectory in _READERS[origin](file))
    count = 0
    with (out / "trajectories.jsonl").open("w", encoding="utf-8") as target:
        for trajectory in found:
            target.write(trajectory.model_dump_json() + "\n")
            count += 1
    return count


def _read_atif(file: Path) -> Iterator[Trajectory]:
    yield from_atif(_object(file))


def _read_swe_agent(file: Path) -> Iterator[Trajectory]:
    yield from_swe_agent(_object(file), name=file.name.removesuffix(".traj"))


def _read_messages(file: Path) -> Iterator[Trajectory]:
    for number, row in read_jsonl(file):
        if not isinstance(row.get("messages"), list):
            raise DatasetError(f"{file} line {number} has no list of messages")
        name = str(row.get("id") or f"{file.stem}-{number}")
        yield from_messages(row["messages"], row.get("tools") or (), name=name)


def _object(file: Path) -> dict[str, Any]:
    value = read_json(file)
    if not isinstance(value, dict):
        raise DatasetError(f"{file} must hold a JSON object")
    return value


_READERS: dict[str, Callable[[Path], Iterator[Trajectory]]] = {
    "atif": _read_atif,
    "messages": _read_messages,
    "swe-agent": _read_swe_agent,
}

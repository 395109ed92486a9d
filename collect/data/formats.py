"""The files of each format that `gumshoe convert` reads and writes."""

from __future__ import annotations

import json
import urllib.parse
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gumshoe.collect.data.atif import all_from_atif, to_atif
from gumshoe.collect.data.messages import from_mini_swe_agent, from_row, from_swe_agent
from gumshoe.errors import ConfigError, DatasetError
from gumshoe.records import Trajectory
from gumshoe.storage import read_json, read_jsonl, write_atomic, write_lines

__all__ = ["FORMATS", "Format", "write_atif"]

HEAD_BYTES = 4096


@dataclass(frozen=True)
class Format:
    """How trajectories are stored in files: as the object in a JSON file, or one in each line of a `.jsonl` file.

    Attributes:
        endings: how the names of its files end, by which they are found in a folder.
        parse: the trajectories in an object, given its name: that of the file, with the number of the line if there
            are several. Raises DatasetError.
        mark: what the beginning of a file holds if it is one of them; others in a folder are skipped.
    """

    endings: tuple[str, ...]
    parse: Callable[[Mapping[str, Any], str], Iterable[Trajectory]]
    mark: bytes = b""

    def read(self, file: Path) -> Iterator[Trajectory]:
        """The trajectories in one file. Raises a DatasetError that names it."""
        by_line = file.suffix == ".jsonl" or self.endings == (".jsonl",)
        for place, name, value in _objects(file, by_line=by_line):
            try:
                yield from self.parse(value, name)
            except DatasetError as error:
                raise DatasetError(f"{place}: {error}") from None

    def read_all(self, source: Path) -> Iterator[Trajectory]:
        """The trajectories in a file, or in all files in and below a folder. Raises DatasetError."""
        files = [source]
        if source.is_dir():
            files = [file for file in sorted(source.rglob("*")) if self._is_among(file)]
        if not files:
            raise DatasetError(f"{source} holds no {' or '.join(self.endings)} files of this format")
        for file in files:
            yield from self.read(file)

    def _is_among(self, file: Path) -> bool:
        if not file.name.endswith(self.endings) or not file.is_file():
            return False
        if not self.mark:
            return True
        with file.open("rb") as opened:
            return self.mark in opened.read(HEAD_BYTES)


def _objects(file: Path, *, by_line: bool) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The objects in a file, each with its place and its name. Raises DatasetError."""
    if by_line:
        for number, row in read_jsonl(file):
            yield f"{file} line {number}", f"{file.stem}-{number}", row
        return
    value = read_json(file)
    if not isinstance(value, dict):
        raise DatasetError(f"{file} must hold a JSON object")
    yield str(file), file.name.removesuffix(".json").removesuffix(".traj"), value


FORMATS: dict[str, Format] = {
    # Harbor's job folders hold other JSON, too.
    "atif": Format((".json", ".jsonl"), lambda value, name: all_from_atif(value), mark=b'"ATIF-v'),
    "messages": Format((".jsonl",), lambda value, name: [from_row(value, name=name)]),
    "mini-swe-agent": Format((".traj.json",), lambda value, name: [from_mini_swe_agent(value, name=name)]),
    "swe-agent": Format((".traj",), lambda value, name: [from_swe_agent(value, name=name)]),
}


def write_atif(trajectories: Iterable[Trajectory], out: Path) -> int:
    """Writes trajectories as ATIF, and returns how many.

    `out` is a .jsonl file for all of them, a .json file for a single one, or a folder that gets one file for each.

    Raises:
        ConfigError: there are several for a .json file.
    """
    if out.suffix == ".jsonl":
        return write_lines(out, (json.dumps(to_atif(one), ensure_ascii=False) for one in trajectories))
    names: Counter[str] = Counter()
    for trajectory in trajectories:
        if out.suffix == ".json" and names:
            raise ConfigError(
                f"{out.name} can hold only one trajectory, but there are several: give a folder for --out"
            )
        name = urllib.parse.quote(trajectory.id, safe="#")[:200]
        names[name] += 1
        # Episodes of two arms may have one id. No quoted id holds a space.
        numbered = name if names[name] == 1 else f"{name} {names[name]}"
        text = json.dumps(to_atif(trajectory), ensure_ascii=False, indent=1)
        write_atomic(out if out.suffix == ".json" else out / f"{numbered}.json", f"{text}\n")
    return names.total()

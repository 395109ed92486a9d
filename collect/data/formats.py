"""The files and folders of each format that `gumshoe convert` reads and writes."""

from __future__ import annotations

import json
import urllib.parse
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gumshoe.collect.data.atif import all_from_atif, to_atif
from gumshoe.collect.data.messages import from_messages, from_mini_swe_agent, from_swe_agent
from gumshoe.errors import ConfigError, DatasetError
from gumshoe.records import Trajectory
from gumshoe.storage import parse_json, read_json, read_jsonl, write_atomic, write_lines

__all__ = ["FORMATS", "Format", "write_atif"]

HEAD_BYTES = 4096


@dataclass(frozen=True)
class Format:
    """How trajectories are stored in files.

    Attributes:
        endings: suffixes of its files, by which they are found in a folder.
        parse: the trajectories in one file. Raises DatasetError.
        holds: whether a file in a folder is one of them; others are skipped.
    """

    endings: tuple[str, ...]
    parse: Callable[[Path], Iterator[Trajectory]]
    holds: Callable[[Path], bool] = lambda file: True

    def read(self, file: Path) -> Iterator[Trajectory]:
        """The trajectories in one file. Raises a DatasetError that names it."""
        with _naming(file):
            yield from self.parse(file)

    def read_all(self, source: Path) -> Iterator[Trajectory]:
        """The trajectories in a file, or in all files in and below a folder. Raises DatasetError."""
        if not source.is_dir():
            yield from self.read(source)
            return
        named = sorted(file for file in source.rglob("*") if file.suffix in self.endings and file.is_file())
        files = [file for file in named if self.holds(file)]
        if not files:
            raise DatasetError(f"{source} holds no {' or '.join(self.endings)} files of this format")
        for file in files:
            yield from self.read(file)


@contextmanager
def _naming(file: Path, line: int | None = None) -> Generator[None]:
    """Has every DatasetError of the block name the file, and the line if there is one."""
    try:
        yield
    except DatasetError as error:
        place = str(file) if line is None else f"{file} line {line}"
        raise DatasetError(str(error) if str(file) in str(error) else f"{place}: {error}") from None


def _read_atif(file: Path) -> Iterator[Trajectory]:
    if file.suffix != ".jsonl":
        yield from all_from_atif(_object(file))
        return
    for number, row in read_jsonl(file):
        with _naming(file, number):
            yield from all_from_atif(row)


def _holds_atif(file: Path) -> bool:
    """Whether it names a version of ATIF near its beginning: Harbor's job folders hold other JSON, too."""
    with file.open("rb") as opened:
        return b'"ATIF-v' in opened.read(HEAD_BYTES)


def _read_swe_agent(file: Path) -> Iterator[Trajectory]:
    yield from_swe_agent(_object(file), name=file.name.removesuffix(".traj"))


def _read_mini_swe_agent(file: Path) -> Iterator[Trajectory]:
    yield from_mini_swe_agent(_object(file), name=file.name.removesuffix(".json").removesuffix(".traj"))


def _holds_mini_swe_agent(file: Path) -> bool:
    return file.name.endswith(".traj.json")


def _read_messages(file: Path) -> Iterator[Trajectory]:
    for number, row in read_jsonl(file):
        messages, tools = _decoded(row.get("messages")), _decoded(row.get("tools"))
        if not isinstance(messages, list):
            raise DatasetError(f"{file} line {number} has no list of messages")
        name = str(row.get("id") or f"{file.stem}-{number}")
        with _naming(file, number):
            yield from_messages(messages, tools or (), name=name)


def _decoded(value: Any) -> Any:
    """The value, or what it holds as JSON text, as columns of many sets do."""
    with suppress(ValueError):
        return parse_json(value) if isinstance(value, str) else value
    return value


FORMATS: dict[str, Format] = {
    "atif": Format((".json", ".jsonl"), _read_atif, _holds_atif),
    "messages": Format((".jsonl",), _read_messages),
    "mini-swe-agent": Format((".json",), _read_mini_swe_agent, _holds_mini_swe_agent),
    "swe-agent": Format((".traj",), _read_swe_agent),
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


def _object(file: Path) -> dict[str, Any]:
    value = read_json(file)
    if not isinstance(value, dict):
        raise DatasetError(f"{file} must hold a JSON object")
    return value

"""The run folder: everything that one `gumshoe collect` leaves behind.

    config.yaml          the resolved config, without secrets
    state.json           how many episodes were planned, by which process
    trajectories.jsonl   one finished trajectory a line
    failures.jsonl       one failure of the infrastructure a line
    journal/             the episodes in flight
    run.log              what happened when

One process at a time works in it. Whatever kills that process, the next one finds each line whole or not at all.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import yaml
from pydantic import ValidationError

from gumshoe.collect.config import CollectConfig
from gumshoe.collect.journal import Journal
from gumshoe.config import dump_config
from gumshoe.errors import ConfigError, DatasetError
from gumshoe.records import Trajectory

__all__ = ["RunFolder", "read_failures", "read_state", "read_trajectories", "run_identity"]

TRAJECTORIES = "trajectories.jsonl"
FAILURES = "failures.jsonl"
LOCK_PATIENCE_S = 0.5
MAY_CHANGE = ("out", "workers", "runner", "ray", "budget", "attempts")
_ID = re.compile(rb'^\{"schema_version":\s*\d+,\s*"id":\s*("(?:[^"\\]|\\.)*")')


class RunFolder:
    """A run folder held open for writing. Use it as a context manager.

    Args:
        path: the folder; made if missing.
        config: what is run. An earlier config in the folder must agree in all but `MAY_CHANGE` and a
            `tasks.limit`.

    Raises:
        ConfigError: another process holds the folder, or another run is in it.
        DatasetError: a line in the middle of its files is broken.
    """

    def __init__(self, path: Path, config: CollectConfig) -> None:
        self.path = path
        self.identity = run_identity(config)
        self._guard = threading.Lock()
        try:
            (path / "journal").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"the run folder {path} cannot be made: {error}") from None
        self._lock = _take_lock(path)
        self._files: list[IO[bytes]] = []
        try:
            _check_config(path, config)
            for name in (TRAJECTORIES, FAILURES):
                repair_tail(path / name)
            self.finished = {trajectory_id(line) for line in _lines(path / TRAJECTORIES)}
            _drop_finished_journals(path, self.finished)
            self._attempts = Counter(entry["id"] for entry in read_failures(path) if entry["kind"] != "diverged")
            self._trajectories = self._open(TRAJECTORIES)
            self._failures = self._open(FAILURES)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def plan(self, episodes: int) -> None:
        """Notes how many episodes the run has, for `gumshoe status`."""
        state = {"planned": episodes, "pid": os.getpid(), "started": time.time()}
        write_whole(self.path / "state.json", json.dumps(state) + "\n")

    def failed_attempts(self, episode: str) -> int:
        """How often the infrastructure has failed the episode so far."""
        with self._guard:
            return self._attempts[episode]

    def journal(self, episode: str, identity: dict[str, Any]) -> Journal:
        """The journal of an episode."""
        place = self.path / "journal" / _journal_name(episode)
        return Journal(place, {"id": episode, "run": self.identity, **identity})

    def add(self, trajectory: Trajectory) -> None:
        """Puts a finished trajectory on disk. Returns only when it is there."""
        with self._guard:
            _append(self._trajectories, trajectory.model_dump_json().encode())
            self.finished.add(trajectory.id)

    def add_failure(self, episode: str, kind: str, message: str) -> None:
        """Puts a failure of the infrastructure on disk; `kind` is the error's type, or `diverged`."""
        entry = {
            "id": episode,
            "kind": kind,
            "message": message,
            "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }
        with self._guard:
            _append(self._failures, json.dumps(entry, ensure_ascii=False).encode("utf-8", "replace"))
            self._attempts[episode] += kind != "diverged"

    def close(self) -> None:
        """Closes the files and gives the lock back. Idempotent."""
        for file in self._files:
            file.close()
        self._lock.close()

    def _open(self, name: str) -> IO[bytes]:
        file = (self.path / name).open("ab")
        self._files.append(file)
        return file


def run_identity(config: CollectConfig) -> str:
    """SHA-256 (hex) of the part of the config that makes two runs the same run."""
    return hashlib.sha256(json.dumps(_fixed(config), sort_keys=True).encode()).hexdigest()


def read_trajectories(path: Path) -> Iterator[Trajectory]:
    """The finished trajectories of a run folder, one at a time; a torn last line is left out. Raises DatasetError."""
    if not (path / TRAJECTORIES).is_file():
        raise DatasetError(f"{path} is not a run folder: it has no {TRAJECTORIES} (make one with gumshoe collect)")
    for number, line in enumerate(_lines(path / TRAJECTORIES), start=1):
        try:
            yield Trajectory.model_validate_json(line)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = f" {'.'.join(str(part) for part in first['loc'])}:" if first["loc"] else ""
            raise DatasetError(f"{path / TRAJECTORIES} line {number}:{where} {first['msg']}") from None


def read_failures(path: Path) -> Iterator[dict[str, Any]]:
    """The entries of failures.jsonl. Raises DatasetError."""
    for number, line in enumerate(_lines(path / FAILURES), start=1):
        try:
            yield json.loads(line)
        except ValueError as error:
            raise DatasetError(f"{path / FAILURES} line {number} is not JSON: {error}") from None


def read_state(path: Path) -> dict[str, Any]:
    """What the last process said about the run: `planned`, `pid`, `started`, and whether it is `running` now."""
    try:
        state = json.loads((path / "state.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        state = {}
    return {**state, "running": is_locked(path)}


def trajectory_id(line: bytes) -> str:
    """The id in a line of trajectories.jsonl, without reading the rest of it. Raises DatasetError."""
    match = _ID.match(line)
    try:
        return str(json.loads(match[1] if match else line)) if match else str(json.loads(line)["id"])
    except (ValueError, KeyError, TypeError):
        raise DatasetError(f"a line of {TRAJECTORIES} is broken: {line[:60]!r}") from None


def repair_tail(path: Path) -> bool:
    """Cuts off a last line without its end, as a killed process leaves it; says whether there was one."""
    if not path.exists():
        return False
    with path.open("r+b") as file:
        size = keep = file.seek(0, os.SEEK_END)
        while keep > 0:
            start = max(0, keep - 65536)
            file.seek(start)
            newline = file.read(keep - start).rfind(b"\n")
            keep = start + newline + 1
            if newline >= 0:
                break
        if keep == size:
            return False
        file.truncate(keep)
        file.flush()
        os.fsync(file.fileno())
    return True


def is_locked(path: Path) -> bool:
    """Whether a process works in the run folder now."""
    try:
        with (path / ".lock").open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def write_whole(path: Path, text: str) -> None:
    """Writes beside, then renames: a reader sees the old file or the new one."""
    beside = path.with_name(f".{path.name}.new")
    with beside.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


def _take_lock(path: Path) -> IO[bytes]:
    """The run folder's lock. A process killed while it starts a program leaves a child that holds it for a moment."""
    file = (path / ".lock").open("a+b")
    deadline = time.monotonic() + LOCK_PATIENCE_S
    while not _locked(file):
        if time.monotonic() < deadline:
            time.sleep(0.1)
            continue
        file.seek(0)
        holder = file.read().decode(errors="replace").strip()
        file.close()
        raise ConfigError(f"process {holder or '?'} is working in the run folder {path}: wait, or stop it") from None
    file.truncate(0)
    file.write(f"{os.getpid()}\n".encode())
    file.flush()
    return file


def _locked(file: IO[bytes]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _journal_name(episode: str) -> str:
    return f"{hashlib.sha256(episode.encode()).hexdigest()[:24]}.jsonl"


def _drop_finished_journals(path: Path, finished: set[str]) -> None:
    """Removes journals of episodes whose trajectory got to the disk just before the process was killed."""
    left = list((path / "journal").iterdir())
    names = {_journal_name(episode) for episode in finished} if left else set[str]()
    for journal in left:
        if journal.name in names or journal.suffix == ".new":
            journal.unlink()


def _check_config(path: Path, config: CollectConfig) -> None:
    """Refuses a folder that holds another run; writes config.yaml."""
    place = path / "config.yaml"
    if place.exists():
        try:
            earlier = yaml.safe_load(place.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise DatasetError(f"{place} cannot be read: {error}") from None
        differing = _differences(_without_changeable(earlier or {}), _fixed(config))
        if differing:
            raise ConfigError(
                f"{path} holds another run: {differing[0]} differs; give another folder with -p out=..., or remove it"
            )
    write_whole(place, dump_config(config))


def _fixed(config: CollectConfig) -> dict[str, Any]:
    return _without_changeable(config.model_dump(mode="json"))


def _without_changeable(data: dict[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in data.items() if key not in MAY_CHANGE}
    tasks = kept.get("tasks")
    if isinstance(tasks, dict):
        kept["tasks"] = {key: value for key, value in tasks.items() if key != "limit"}
    return kept


def _differences(left: Any, right: Any, at: str = "") -> list[str]:
    if not isinstance(left, dict) or not isinstance(right, dict):
        return [] if left == right else [at]
    keys = sorted({*left, *right})
    return [
        found
        for key in keys
        for found in _differences(left.get(key), right.get(key), f"{at}.{key}" if at else str(key))
    ]


def _lines(path: Path) -> Iterator[bytes]:
    """The whole lines of a file, without their ends."""
    if not path.exists():
        return
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                yield line[:-1]


def _append(file: IO[bytes], line: bytes) -> None:
    file.write(line + b"\n")
    file.flush()
    os.fsync(file.fileno())

"""The run folder: everything that one `gumshoe collect` leaves behind.

    config.yaml          the resolved config, without secrets
    state.json           how many episodes were planned, by which process
    trajectories.jsonl   one finished trajectory per line
    failures.jsonl       one failed attempt per line: a failure of the infrastructure, or our own
    journal/             the episodes in flight
    replaced.jsonl       trajectories that --force-all or --force-failed has set aside
    run.log              what happened when

One process at a time works in it. Whatever kills that process, the next one finds each line whole or not at all.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Set
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

from gumshoe.collect.config import CollectConfig
from gumshoe.collect.data.journal import Journal
from gumshoe.collect.data.tree import Node, node_of
from gumshoe.config import RUN_CONFIG, dump_config, earlier_config, validate
from gumshoe.errors import ConfigError, DatasetError
from gumshoe.records import StopReason, Trajectory
from gumshoe.storage import (
    append_line,
    ends_whole,
    is_locked,
    open_append,
    parse_json,
    read_jsonl,
    read_records,
    take_lock,
    write_atomic,
    write_lines,
)

TRAJECTORIES = "trajectories.jsonl"
FAILURES = "failures.jsonl"
REPLACED = "replaced.jsonl"
DECIDED = (StopReason.SUBMITTED, StopReason.REPORTED)
Again = Literal["all", "failed"]

log = logging.getLogger(__name__)
MAY_CHANGE = ("out", "workers", "runner", "ray", "budget", "attempts", "fail_on_error")


class RunFolder:
    """A run folder held open for writing. Use it as a context manager.

    Args:
        path: the folder; made if missing.
        again: which finished episodes are to be played again; see `_set_aside`.
        config: what is run. An earlier config in the folder must agree in everything but `MAY_CHANGE` and
            `tasks.limit`.

    Raises:
        ConfigError: another process holds the folder, or another run is in it.
        DatasetError: a line of trajectories.jsonl or failures.jsonl is damaged; the message names it.
    """

    def __init__(self, path: Path, config: CollectConfig, again: Again | None = None) -> None:
        self.path = path
        self.identity = run_identity(config)
        self._guard = threading.Lock()
        earlier_config(path, CollectConfig, "collect")  # Before anything is made in a folder of another command.
        try:
            (path / "journal").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"the run folder {path} cannot be created: {error}") from None
        with ExitStack() as files:
            files.enter_context(take_lock(path))
            _check_config(path, config)
            if again is not None:
                _set_aside(path, again)
            opened = (files.enter_context(open_append(path / name)) for name in (TRAJECTORIES, FAILURES))
            self._trajectories, self._failures = opened
            self.nodes: dict[str, Node] = {one.id: node_of(one) for one in read_trajectories(path)}
            """The finished episodes."""
            _drop_finished_journals(path, self.finished)
            self._attempts = Counter(entry["id"] for entry in read_failures(path) if entry["kind"] != "diverged")
            self._files = files.pop_all()

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def finished(self) -> Set[str]:
        """The ids of the finished episodes."""
        return self.nodes.keys()

    def plan(self, episodes: int) -> None:
        """Notes how many episodes the run has, for `gumshoe status`."""
        state = {"planned": episodes, "pid": os.getpid(), "started": time.time()}
        write_atomic(self.path / "state.json", json.dumps(state) + "\n")

    def failed_attempts(self, episode: str) -> int:
        """How many attempts at the episode have failed so far, a replay that diverged not counted."""
        with self._guard:
            return self._attempts[episode]

    def journal(self, episode: str, identity: dict[str, Any]) -> Journal:
        """The journal of an episode."""
        place = self.path / "journal" / _journal_name(episode)
        return Journal(place, {"id": episode, "run": self.identity, **identity})

    def add(self, trajectory: Trajectory) -> None:
        """Puts a finished trajectory on disk. Returns only when it is there; its journal is removed."""
        with self._guard:
            append_line(self._trajectories, trajectory.model_dump_json())
            self.nodes[trajectory.id] = node_of(trajectory)
        (self.path / "journal" / _journal_name(trajectory.id)).unlink(missing_ok=True)

    def read(self, id: str) -> Trajectory:
        """A finished trajectory. Raises DatasetError if there is none with this id."""
        for found in read_trajectories(self.path):
            if found.id == id:
                return found
        raise DatasetError(f"{self.path} holds no finished episode {id}")

    def add_failure(self, episode: str, kind: str, message: str, traceback: str | None = None) -> None:
        """Puts a failed attempt on disk.

        `kind` is the error's type, or `diverged`; `traceback` is that of an unforeseen error.
        """
        entry = {
            "id": episode,
            "kind": kind,
            "message": message,
            "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            **({} if traceback is None else {"traceback": traceback}),
        }
        with self._guard:
            append_line(self._failures, json.dumps(entry, ensure_ascii=False))
            self._attempts[episode] += kind != "diverged"

    def close(self) -> None:
        """Closes the files and releases the lock. Idempotent."""
        self._files.close()


def run_identity(config: CollectConfig) -> str:
    """SHA-256 (hex) of the part of the config that makes two runs the same run."""
    return hashlib.sha256(json.dumps(_fixed(config), sort_keys=True).encode()).hexdigest()


def read_trajectories(path: Path) -> Iterator[Trajectory]:
    """The finished trajectories of a run folder, one at a time; a torn last line is left out with a warning.

    Raises DatasetError.
    """
    file = path / TRAJECTORIES
    if not file.is_file():
        raise DatasetError(f"{path} is not a run folder: it has no {TRAJECTORIES} (create one with gumshoe collect)")
    yield from read_records(file, Trajectory, finished=True)
    if not is_locked(path) and not ends_whole(file):
        log.warning("%s was cut off: its last line is incomplete and left out", file)


def write_trajectories(folder: Path, trajectories: Iterable[Trajectory]) -> int:
    """Writes the trajectories of a new run folder, and returns how many."""
    return write_lines(folder / TRAJECTORIES, (trajectory.model_dump_json() for trajectory in trajectories))


def read_failures(path: Path) -> Iterator[dict[str, Any]]:
    """The entries of failures.jsonl: `id`, `kind`, `message`, `at`, and `traceback` of an error that nobody foresaw.

    Raises DatasetError.
    """
    if (path / FAILURES).exists():
        yield from (entry for _, entry in read_jsonl(path / FAILURES, finished=True))


def read_state(path: Path) -> dict[str, Any]:
    """What the last process said about the run: `planned`, `pid`, `started`, and whether it is `running` now."""
    try:
        state = parse_json((path / "state.json").read_bytes())
    except (OSError, ValueError):
        state = {}
    return {**(state if isinstance(state, dict) else {}), "running": is_locked(path)}


def _journal_name(episode: str) -> str:
    return f"{hashlib.sha256(episode.encode()).hexdigest()[:24]}.jsonl"


def _drop_finished_journals(path: Path, finished: Set[str]) -> None:
    """Removes journals of episodes whose trajectory got to the disk just before the process was killed."""
    left = list((path / "journal").iterdir())
    names = {_journal_name(episode) for episode in finished} if left else set[str]()
    for journal in left:
        if journal.name in names or journal.suffix == ".new":
            journal.unlink()


def _check_config(path: Path, config: CollectConfig) -> None:
    """Refuses a folder that holds another run; writes config.yaml."""
    earlier = earlier_config(path, CollectConfig, "collect")
    if earlier is not None:
        known = validate(CollectConfig, earlier, origin=str(path / RUN_CONFIG))
        differing = _difference(_fixed(known), _fixed(config))
        if differing is not None:
            raise ConfigError(
                f"{path} holds another run: {differing} differs; give another folder with -p out=..., or remove it"
            )
    write_atomic(path / RUN_CONFIG, dump_config(config))


def _fixed(config: CollectConfig) -> dict[str, Any]:
    """What makes two runs the same run. Default values are left out, so that a run begun before some key existed can
    continue.
    """
    changeable = {**dict.fromkeys(MAY_CHANGE, True), "tasks": {"limit"}}
    return config.model_dump(mode="json", exclude_defaults=True, exclude=changeable)


def _difference(left: Any, right: Any, at: str = "") -> str | None:
    """The first key, in full, whose value is not the same in both."""
    if not isinstance(left, dict) or not isinstance(right, dict):
        return None if left == right else at
    inner = (_difference(left.get(key), right.get(key), f"{at}.{key}".lstrip(".")) for key in sorted({*left, *right}))
    return next((found for found in inner if found is not None), None)


def _set_aside(path: Path, again: Again) -> None:
    """Moves trajectories of a run folder to replaced.jsonl and forgets failed attempts, so that a run plays them again.

    Episodes in flight continue from their journals with `failed`, and begin anew with `all`. A process that is killed
    in between loses nothing: a trajectory is in replaced.jsonl before it leaves trajectories.jsonl.

    Args:
        path: the run folder, which its caller has locked.
        again: `all` trajectories, or those that `failed` (see `_has_failed`).

    Raises:
        DatasetError: trajectories.jsonl is broken.
    """
    if (path / TRAJECTORIES).exists():
        fresh = path / f".{TRAJECTORIES}.new"
        with open_append(path / REPLACED) as replaced, fresh.open("wb") as kept:
            for trajectory in read_records(path / TRAJECTORIES, Trajectory, finished=True):
                leaves = again == "all" or _has_failed(trajectory)
                append_line(replaced if leaves else kept, trajectory.model_dump_json(), sync=False)
            for file in (replaced, kept):
                os.fsync(file.fileno())
        fresh.replace(path / TRAJECTORIES)
    (path / FAILURES).unlink(missing_ok=True)
    if again == "all":
        for journal in (path / "journal").glob("*"):
            journal.unlink()


def _has_failed(trajectory: Trajectory) -> bool:
    """Whether an episode did not resolve its task or, if it was not judged, did not end by submit or report."""
    return trajectory.resolved is False or (trajectory.resolved is None and trajectory.stop not in DECIDED)


class Copies:
    """Leaves out copies of episodes, and counts them. Having the same id, as those of two arms may, makes no copy."""

    def __init__(self) -> None:
        self.count = 0
        self._seen: set[bytes] = set()

    def leave_out(self, trajectories: Iterable[Trajectory]) -> Iterator[Trajectory]:
        """The trajectories whose content was not among those of earlier ones."""
        for trajectory in trajectories:
            digest = hashlib.sha256(trajectory.model_dump_json().encode()).digest()
            if digest in self._seen:
                self.count += 1
            else:
                self._seen.add(digest)
                yield trajectory

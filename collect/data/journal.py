"""The journal of an episode in flight: what was decided is on disk before it is acted on.

One JSON-lines file per episode. Its first line says which episode it is; a line follows for each completion and for
what came back. After a crash, the recorded completions are replayed into a fresh sandbox. If the same observations
come back, the episode continues from there; if not, `Diverged` says so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from gumshoe.records import Completion, Observation, Record
from gumshoe.storage import append_line, open_append, read_records, write_jsonl

_VARYING = (
    (re.compile(r"0x[0-9a-fA-F]{4,}"), "0x"),
    (re.compile(r"(?<=\.\.\.)[0-9a-fA-F]{4,}(?=>)"), "0x"),  # the end of an address that pytest has shortened
    (re.compile(r"\d+(?:\.\d+)?\s?(?:µs|us|ms|seconds?|secs?|s)\b"), "T"),
    (re.compile(r"/(?:var/)?tmp/[^\s'\":,)]+"), "T"),
    (re.compile(r"\b(pid|PID)[ =:]+\d+"), "pid"),
)


class Diverged(Exception):
    """A replayed call gave a different observation from the one in the journal."""


@dataclass
class JournaledTurn:
    """A turn as a journal has it: `observations` are what came back, None if nothing has yet."""

    completion: Completion
    observations: list[str] | None = None


@dataclass(frozen=True)
class JournalContent:
    """Which episode a journal is of, and its turns."""

    episode: dict[str, JsonValue] | None
    turns: list[JournaledTurn]


class Journal:
    """The file of one episode. Use it as a context manager; the file stays.

    Args:
        path: where it is kept; an earlier journal with the same `identity` is replayed, any other is started over.
        identity: what must agree for a replay to make sense: task hash, config hash, seed.

    Raises DatasetError for a damaged line.
    """

    def __init__(self, path: Path, identity: dict[str, Any]) -> None:
        self._path = path
        earlier = read_journal(path) if path.exists() else None
        if earlier is None or earlier.episode != identity:
            write_jsonl(path, [{"episode": identity}])
            earlier = JournalContent(identity, [])
        self._turns = earlier.turns
        self._next = 0
        self._file = open_append(path)

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def replayable(self) -> int:
        """How many completions the journal holds: until the first is added, those that an earlier process left."""
        return len(self._turns)

    def recorded(self) -> Completion | None:
        """The completion that was recorded for the coming turn; None if a new one is needed."""
        if self._next >= len(self._turns):
            return None
        return self._turns[self._next].completion

    def decide(self, completion: Completion) -> None:
        """Puts a new completion on disk. Returns only when it is there."""
        append_line(self._file, json.dumps({"completion": completion.model_dump(mode="json")}))
        self._turns.append(JournaledTurn(completion))

    def observe(self, observations: Sequence[Observation]) -> None:
        """Checks or records what came back in this turn. Raises Diverged.

        What is recorded survives this process. It reaches the disk with the next completion: until then, only a machine
        failure can lose it, and no more than the check of one turn is lost with it.
        """
        turn = self._turns[self._next]
        seen = [observation.text for observation in observations]
        if turn.observations is None:
            append_line(self._file, json.dumps({"observations": seen}), sync=False)
            turn.observations = seen
        elif [comparable(text) for text in turn.observations] != [comparable(text) for text in seen]:
            raise Diverged(f"turn {self._next} was answered differently than before the crash")
        self._next += 1

    def close(self) -> None:
        """Closes the file and keeps it. Idempotent."""
        self._file.close()

    def set_aside(self) -> None:
        """Keeps it under another name: it has diverged and is no longer replayed."""
        self.close()
        number = sum(1 for _ in self._path.parent.glob(f"{self._path.stem}.diverged-*"))
        self._path.rename(self._path.with_name(f"{self._path.stem}.diverged-{number}"))


def comparable(text: str) -> str:
    """The observation without what differs from run to run: durations, addresses, temporary paths, process ids."""
    for pattern, stand_in in _VARYING:
        text = pattern.sub(stand_in, text)
    return text


class _Line(Record):
    episode: dict[str, JsonValue] | None = None
    completion: Completion | None = None
    observations: tuple[str, ...] | None = None


def read_journal(path: Path) -> JournalContent:
    """What a journal holds, also one that is being written: a last line without a line end is left out.

    Raises DatasetError.
    """
    episode: dict[str, JsonValue] | None = None
    turns: list[JournaledTurn] = []
    for line in read_records(path, _Line, finished=True):
        episode = line.episode if episode is None else episode
        if line.completion is not None:
            turns.append(JournaledTurn(line.completion))
        elif line.observations is not None and turns:
            turns[-1].observations = list(line.observations)
    return JournalContent(episode, turns)

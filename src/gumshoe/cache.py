"""Results that are computed once and kept by key: in a JSON-lines file, or with files of their own in a folder."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter

from gumshoe.errors import DatasetError
from gumshoe.storage import append_line, in_turn, open_append, read_jsonl, repair_tail, write_atomic

ResultT = TypeVar("ResultT")


class JsonlCache:
    """A mapping of keys to facts that outlives the process. What is kept is on disk when `keep` returns.

    A file that is there is read, a torn last line cut off, and appended to. Raises DatasetError if it has a line that
    Gumshoe did not write.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._guard = threading.Lock()
        self._known = _read(path)

    def get(self, key: str) -> Mapping[str, Any] | None:
        """The facts of a key; None where it was never kept."""
        with self._guard:
            return self._known.get(key)

    def find(self, key: str, make: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
        """The facts of a key, made and kept if there are none yet."""
        known = self.get(key)
        if known is None:
            known = make()
            self.keep(key, known)
        return known

    def keep(self, key: str, facts: Mapping[str, Any]) -> None:
        """Puts the facts of a key on disk."""
        line = json.dumps({"key": key, **facts})
        with self._guard:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with open_append(self._path) as file:
                append_line(file, line)
            self._known[key] = facts


def digest(*facts: Any) -> str:
    """A key for facts that JSON can hold."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:24]


def _read(path: Path) -> dict[str, Mapping[str, Any]]:
    known: dict[str, Mapping[str, Any]] = {}
    repair_tail(path)
    try:
        for number, row in read_jsonl(path) if path.exists() else ():
            if "key" not in row:
                raise DatasetError(f"{path} line {number} has no key")
            known[str(row.pop("key"))] = row
    except DatasetError as error:
        raise DatasetError(f"{error}: remove the file; it will be created again") from None
    return known


class FolderCache(Generic[ResultT]):
    """Results of a type that pydantic can write as JSON, each in a folder named by its key, for its files."""

    def __init__(self, folder: Path, kind: type[ResultT]) -> None:
        self.folder = folder
        self._results = TypeAdapter(kind)

    def find(
        self, key: str, make: Callable[[Path], ResultT], valid: Callable[[ResultT], bool] = lambda known: True
    ) -> ResultT:
        """The result of a key, made with `make(folder for its files)` and kept if there is none that is `valid`.

        One at a time: another thread or process that needs the same waits for this one's result.
        """
        folder = self.folder / key
        folder.mkdir(parents=True, exist_ok=True)
        with in_turn(folder):
            known = self._read(folder / "result.json")
            if known is None or not valid(known):
                known = make(folder)
                write_atomic(folder / "result.json", self._results.dump_json(known, indent=1))
            return known

    def _read(self, record: Path) -> ResultT | None:
        try:
            return self._results.validate_json(record.read_bytes())
        except (OSError, ValueError):
            return None

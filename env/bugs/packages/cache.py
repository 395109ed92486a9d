"""Finished stages, kept by the hash of what went into them, so that nothing is done twice."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter

from gumshoe.locks import in_turn
from gumshoe.storage import cache_folder, write_atomic

__all__ = ["StageCache", "key_of", "stage_folder"]

# Changed whenever a stage gives a different result for the same input.
VERSION = 7

ResultT = TypeVar("ResultT")


def key_of(*parts: Any) -> str:
    """A name for the inputs of a stage: 24 hex digits."""
    return hashlib.sha256(json.dumps([VERSION, *parts], sort_keys=True, default=str).encode()).hexdigest()[:24]


def stage_folder(stage: str) -> Path:
    """Where the results of a stage are kept on this machine."""
    return cache_folder() / "harvest" / stage


class StageCache(Generic[ResultT]):
    """The results of one stage on this machine, of a type that pydantic can write as JSON."""

    def __init__(self, stage: str, kind: type[ResultT]) -> None:
        self.folder = stage_folder(stage)
        self._results = TypeAdapter(kind)

    def get(
        self, key: str, make: Callable[[Path], ResultT], valid: Callable[[ResultT], bool] = lambda known: True
    ) -> ResultT:
        """The result for a key, made with `make(folder for its files)` where there is none that is `valid`.

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

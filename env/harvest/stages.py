"""Finished stages, kept by the hash of what went into them, so that nothing is done twice."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gumshoe.locks import in_turn
from gumshoe.storage import cache_folder, write_atomic

__all__ = ["StageCache", "key_of"]

# Changed whenever a stage gives a different result for the same input.
VERSION = 6


def key_of(*parts: Any) -> str:
    """A name for the inputs of a stage: 24 hex digits."""
    return hashlib.sha256(json.dumps([VERSION, *parts], sort_keys=True, default=str).encode()).hexdigest()[:24]


class StageCache:
    """The results of one stage on this machine."""

    def __init__(self, stage: str) -> None:
        self.folder = cache_folder() / "harvest" / stage

    def get(self, key: str, make: Callable[[Path], dict[str, Any]], valid: Callable[[dict[str, Any]], bool]) -> Any:
        """The result for a key, made with `make(folder for its files)` where there is none that is `valid`.

        One at a time: another thread or process that needs the same waits for this one's result.
        """
        folder = self.folder / key
        record = folder / "result.json"
        known = _known(record, valid)
        if known is not None:
            return known
        folder.mkdir(parents=True, exist_ok=True)
        with in_turn(folder):
            known = _known(record, valid)  # Made by one that was faster.
            if known is None:
                known = make(folder)
                write_atomic(record, json.dumps(known, indent=1).encode())
            return known


def _known(record: Path, valid: Callable[[dict[str, Any]], bool]) -> dict[str, Any] | None:
    """The result in a file; None where there is none that is valid."""
    try:
        known: dict[str, Any] = json.loads(record.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return known if valid(known) else None

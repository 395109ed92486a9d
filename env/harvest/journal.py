"""What a stage has found out of each task, a line each, so that a killed stage goes on behind it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from pydantic import JsonValue

from gumshoe.records import Record
from gumshoe.storage import append_line, open_append, read_records

__all__ = ["Journal"]


class _Entry(Record):
    """One line."""

    key: str
    found: JsonValue


class Journal:
    """A file of results by key.

    Attributes:
        known: the results so far.
    """

    def __init__(self, path: Path) -> None:
        self.known: dict[str, Any] = (
            {item.key: item.found for item in read_records(path, _Entry, finished=True)} if path.exists() else {}
        )
        self._file = open_append(path)

    def get(self, key: str, make: Callable[[], Any]) -> Any:
        """The result for a key, made and kept where there is none."""
        if key not in self.known:
            self.known[key] = make()
            append_line(self._file, _Entry(key=key, found=self.known[key]).model_dump_json())
        return self.known[key]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

"""Reads what a source holds: lines of a run, rows of a dataset, journals of episodes in progress."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from gumshoe.errors import DatasetError
from gumshoe.eval.view.sources import Source, inside

__all__ = ["FileLine", "as_object", "journal_entries", "new_lines", "read_line", "read_row", "shard_rows"]

BATCH = 64
"""Rows of a shard that are decoded at a time."""


@dataclass(frozen=True)
class FileLine:
    """A whole line of a file: where it begins, and its bytes without the newline."""

    place: int
    data: bytes


def new_lines(path: Path, start: int) -> Iterator[FileLine]:
    """The whole lines from the byte `start` on; one that is still being written is left for later."""
    with path.open("rb") as file:
        file.seek(start)
        place = start
        for data in file:
            if not data.endswith(b"\n"):
                return
            yield FileLine(place, data[:-1])
            place += len(data)


def as_object(data: bytes) -> dict[str, Any] | None:
    """The JSON object that the bytes hold; None where they hold none."""
    try:
        value = from_json(data)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def read_line(path: Path, place: int, length: int) -> bytes:
    """The bytes of an indexed line. Raises DatasetError if the file has changed."""
    try:
        with path.open("rb") as file:
            file.seek(place)
            data = file.read(length + 1)
    except OSError as error:
        raise DatasetError(f"{path.name} cannot be read: {error.strerror}") from None
    if len(data) != length + 1 or not data.endswith(b"\n"):
        raise DatasetError(f"{path.name} has changed: reload the page")
    return data[:-1]


def shard_rows(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a Parquet shard, their JSON columns decoded. Raises DatasetError."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(BATCH):
                yield from (_decoded(row) for row in batch.to_pylist())
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DatasetError(f"{path.name} cannot be read: {' '.join(str(error).split())[:200]}") from None


def read_row(path: Path, number: int) -> dict[str, Any]:
    """One row of a Parquet shard; only its row group is read. Raises DatasetError."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            left = number
            for group in range(file.metadata.num_row_groups):
                size = file.metadata.row_group(group).num_rows
                if left < size:
                    return _decoded(file.read_row_group(group).slice(left, 1).to_pylist()[0])
                left -= size
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DatasetError(f"{path.name} cannot be read: {' '.join(str(error).split())[:200]}") from None
    raise DatasetError(f"{path.name} has changed: reload the page")


def journal_entries(source: Source) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The episodes in progress of a run as (name of the journal, its whole lines)."""
    for path in sorted((source.path / "journal").glob("*.jsonl")):
        entries = read_journal(path, source.root)
        if entries:
            yield path.stem, entries


def read_journal(path: Path, root: Path) -> list[dict[str, Any]]:
    """The whole lines of a journal; none if it has disappeared in the meantime."""
    if ".diverged-" in path.name or not inside(path, root):
        return []
    try:
        found = [as_object(line.data) for line in new_lines(path, 0)]
    except OSError:
        return []
    return [entry for entry in found if entry is not None]


def _decoded(row: Mapping[str, Any]) -> dict[str, Any]:
    """Decodes the JSON columns, which come as text, alone or in a list."""
    return {name: _decode(value) if name in _JSON else value for name, value in row.items()}


_JSON = frozenset(
    {
        *("messages", "tools", "steps", "sampled", "context_pack", "task_tags", "usage", "provenance"),
        *("prompt", "completion", "chosen", "rejected"),
    }
)


def _decode(value: Any) -> Any:
    if isinstance(value, list):
        return [_decode(item) for item in value]
    if not isinstance(value, str):
        return value
    try:
        return from_json(value)
    except ValueError:
        return value

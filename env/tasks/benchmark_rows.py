"""Rows of a published benchmark: from a local JSON Lines, JSON or Parquet file, or from a dataset hub."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from gumshoe.errors import TaskError
from gumshoe.storage import read_json, read_jsonl

__all__ = ["read_rows"]

Row = Mapping[str, Any]


def read_rows(path: str | Path, split: str = "test") -> list[Row]:
    """The rows of a file, or of split `split` of the hub's dataset of that name. Raises TaskError."""
    file = Path(path)
    if file.is_file():
        return list(_checked(_from_file(file), file))
    if file.exists():
        raise TaskError(f"{path} is a folder: give a .jsonl, .json or .parquet file, or the name of a dataset")
    if file.suffix in {".jsonl", ".json", ".parquet"}:
        raise TaskError(f"no file {path}")
    return _from_hub(str(path), split)


def _from_file(file: Path) -> Iterable[Any]:
    try:
        if file.suffix == ".parquet":
            import pyarrow.parquet

            return pyarrow.parquet.read_table(file).to_pylist()
        if file.suffix == ".json":
            rows = read_json(file, error=TaskError)
            return list(rows.values()) if isinstance(rows, dict) else rows if isinstance(rows, list) else [rows]
        return [row for _, row in read_jsonl(file, error=TaskError)]
    except (OSError, ValueError) as error:
        raise TaskError(f"{file} cannot be read: {' '.join(str(error).split())}") from None


def _checked(rows: Iterable[Any], file: Path) -> Iterator[Row]:
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            raise TaskError(f"{file}: row {number} is not a mapping of columns to values")
        yield row


def _from_hub(name: str, split: str) -> list[Row]:
    import datasets
    from datasets.exceptions import DatasetsError

    try:
        loaded = datasets.load_dataset(name, split=split)
    except (OSError, ValueError, DatasetsError) as error:
        first = str(error).strip().splitlines()[0]
        raise TaskError(f"no file and no dataset {name!r} with split {split!r}: {first}") from None
    return [dict(row) for row in loaded if isinstance(row, dict)]

"""Parquet shards with explicit features, written row by row."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datasets import Features
    from datasets.arrow_writer import ParquetWriter

__all__ = ["ShardWriter", "features"]

ROWS_A_GROUP, ROWS_A_SHARD = 32, 5000


def features(columns: Mapping[str, str]) -> Features:
    """The columns' types. `Json` keeps each tool's own arguments: plain Arrow would add null keys to all of them."""
    from datasets import Features, Json, List, Value

    types = {
        "string": Value("string"),
        "bool": Value("bool"),
        "int": Value("int64"),
        "json": Json(),
        "float": Value("float64"),
        "list of json": List(Json()),
        "list of string": List(Value("string")),
        "list of bool": List(Value("bool")),
        "list of int": List(Value("int64")),
        "list of float": List(Value("float64")),
    }
    return Features({name: types[kind] for name, kind in columns.items()})


class ShardWriter:
    """Writes the rows of one split of one view. Memory stays at one row group.

    Args:
        folder: where `SPLIT-00000.parquet`, ... are made.
        split: what their names begin with.
        columns: maps each column's name to its kind.
    """

    def __init__(self, folder: Path, split: str, *, columns: Mapping[str, str]) -> None:
        self._columns = columns
        self._folder = folder
        self._split = split
        self._in_shard = 0
        self._shards = 0
        self._writer: ParquetWriter | None = None

    def __enter__(self) -> ShardWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if self._writer is not None and kind is None:
            self._finish()
        elif self._writer is not None:
            self._writer.close()

    def write(self, row: dict[str, Any]) -> None:
        """Adds a row."""
        if self._writer is None:
            self._writer = self._begin()
        self._writer.write(row)
        self._in_shard += 1
        if self._in_shard >= ROWS_A_SHARD:
            self._finish()

    def _begin(self) -> ParquetWriter:
        from datasets.arrow_writer import ParquetWriter

        self._folder.mkdir(parents=True, exist_ok=True)
        path = os.fspath(self._folder / f"{self._split}-{self._shards:05d}.parquet")
        self._shards += 1
        self._in_shard = 0
        return ParquetWriter(features=features(self._columns), path=path, writer_batch_size=ROWS_A_GROUP)

    def _finish(self) -> None:
        assert self._writer is not None
        self._writer.finalize()
        self._writer = None

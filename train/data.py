"""Rows of a dataset folder, offline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gumshoe.errors import DatasetError

if TYPE_CHECKING:
    from datasets import Dataset

__all__ = ["conversations", "load_rows"]


def load_rows(folder: Path, view: str, split: str, *, limit: int | None = None) -> Dataset:
    """The rows of one split of one view, with `messages` and, where the dataset has them, `tools`.

    Raises:
        DatasetError: the folder, the view, the split or the column is missing, or there is no row.
    """
    import datasets
    from datasets.exceptions import DatasetGenerationError, DatasetNotFoundError

    if not folder.is_dir():
        raise DatasetError(f"there is no dataset folder {folder}: make one with `gumshoe export RUN --out {folder}`")
    try:
        views = datasets.get_dataset_config_names(str(folder))
        if view not in views:
            raise DatasetError(f"dataset {folder} has no view {view!r}: it has {', '.join(sorted(views))}")
        splits = datasets.get_dataset_split_names(str(folder), view)
        if split not in splits:
            raise DatasetError(f"view {view} of dataset {folder} has no split {split!r}: it has {', '.join(splits)}")
        rows = datasets.load_dataset(str(folder), view, split=split)
    except (DatasetNotFoundError, DatasetGenerationError, OSError, ValueError) as error:
        reason = " ".join(str(error.__cause__ or error).split())
        raise DatasetError(f"dataset {folder} cannot be read: {reason}") from None
    assert isinstance(rows, datasets.Dataset)
    if "messages" not in rows.column_names:
        raise DatasetError(f"dataset {folder} has no column messages: it has {', '.join(rows.column_names)}")
    if len(rows) == 0:
        raise DatasetError(f"split {split} of dataset {folder} has no rows")
    return rows if limit is None else rows.select(range(min(limit, len(rows))))


def conversations(rows: Dataset) -> Iterator[Mapping[str, Any]]:
    """The rows one by one, as mappings of column to value."""
    for row in rows:
        assert isinstance(row, Mapping)
        yield row

"""Rows of a dataset folder, read offline and checked before anything is made of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, ValidationError

from gumshoe.errors import DatasetError
from gumshoe.storage import describe, parse_json

if TYPE_CHECKING:
    from datasets import Dataset


def load_rows(
    folder: Path, view: str, split: str, *, limit: int | None = None, columns: Sequence[str] | None = None
) -> Dataset:
    """The rows of one split of one view, with `messages` and, where the dataset has them, `tools`.

    Args:
        folder: the dataset.
        view: its config.
        split: its split.
        limit: maximum number of rows; None: all.
        columns: the columns that it must have; default `messages`, or `prompt` and `completion`.

    Raises:
        DatasetError: one of these is missing, or there are no rows.
    """
    import datasets
    from datasets.exceptions import DatasetGenerationError, DatasetNotFoundError

    if not folder.is_dir():
        raise DatasetError(f"there is no dataset folder {folder}: make one with `gumshoe export RUN --out {folder}`")
    if (folder / "trajectories.jsonl").is_file():
        raise DatasetError(
            f"{folder} is a run folder: make a dataset from it with `gumshoe export {folder} --out DATASET`"
        )
    _refuse_null(folder)
    try:
        views = datasets.get_dataset_config_names(str(folder))
        if view not in views:
            raise DatasetError(f"dataset {folder} has no view {view!r}: it has {', '.join(sorted(views))}")
        splits = datasets.load_dataset(str(folder), view, cache_dir=str(_cache(folder)))
    except (DatasetNotFoundError, DatasetGenerationError, OSError, ValueError, StopIteration) as error:
        reason = " ".join(str(error.__cause__ or error).split()) or "it holds no rows"
        raise DatasetError(f"dataset {folder} cannot be read: {reason}") from None
    if split not in splits:
        known = ", ".join(map(str, splits))
        raise DatasetError(f"view {view} of dataset {folder} has no split {split!r}: it has {known}")
    rows = splits[split]
    assert isinstance(rows, datasets.Dataset)
    known = ", ".join(rows.column_names)
    if columns is None:
        has_completions = {"prompt", "completion"} <= set(rows.column_names)
        columns = ("prompt", "completion") if has_completions else ("messages",)
    if not set(columns) <= set(rows.column_names):
        raise DatasetError(f"view {view} of dataset {folder} lacks a column of {', '.join(columns)}: it has {known}")
    if "id" in rows.column_names:
        # Episodes end in any order; the same ones make the same model.
        ids = list(rows["id"])
        rows = rows.select(sorted(range(len(ids)), key=ids.__getitem__))
    return rows if limit is None else rows.select(range(min(limit, len(rows))))


def _refuse_null(folder: Path) -> None:
    """Raises DatasetError where a row is null: the library that reads the rows ends the whole process on that."""
    for file in sorted(file for ending in ("json", "jsonl") for file in folder.rglob(f"*.{ending}") if file.is_file()):
        with file.open("rb") as lines:
            for number, line in enumerate(lines if file.suffix == ".jsonl" else [lines.readline()], 1):
                if line.strip() == b"null":
                    raise DatasetError(f"{file} line {number} is null: a row must be an object, such as {{...}}")


def _cache(folder: Path) -> Path:
    """A separate cache for each state of each folder.

    In the shared one, a dataset is known by the last part of its path and its configs, so that two folders with the
    same name are mistaken for each other.
    """
    from datasets.config import HF_DATASETS_CACHE

    shards = sorted(path for path in folder.rglob("*") if path.is_file())
    facts = [(str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns) for path in shards]
    digest = hashlib.sha256(json.dumps(facts).encode()).hexdigest()
    return Path(HF_DATASETS_CACHE) / f"gumshoe-{digest[:16]}"


def some_rows(rows: Dataset) -> list[Mapping[str, Any]]:
    """A few rows from all over the dataset."""
    return list(conversations(rows.select(range(0, len(rows), max(1, len(rows) // 8)))))


def conversations(rows: Dataset) -> Iterator[Mapping[str, Any]]:
    """The rows one by one, as mappings of column to value. Raises a DatasetError that names the row by its number."""
    for number, row in enumerate(rows):
        assert isinstance(row, Mapping)
        name = f"row {number} ({row['id']})" if row.get("id") else f"row {number}"
        yield checked_row(row, name)


class _Part(BaseModel):
    model_config = ConfigDict(strict=True)


class _Function(_Part):
    """What a call or a tool says of its function."""

    name: str | None = None


class _Call(_Part):
    """A tool call."""

    function: _Function | None = None


class _Message(_Part):
    """A message of a conversation."""

    role: str
    content: str | list[Any] | None = None
    tool_calls: list[_Call] | None = None


class _Tool(_Function):
    """A tool in the OpenAI form, with or without its outer layer."""

    function: _Function | None = None


class _Step(_Part):
    """An entry of the step table."""

    step: int


class _Sampled(_Part):
    """The tokens that were sampled for a message."""

    message: int
    token_ids: list[int]


class _Columns(_Part):
    """The columns that are read."""

    messages: list[_Message] = []
    prompt: list[_Message] = []
    completion: list[_Message] = []
    chosen: list[_Message] = []
    rejected: list[_Message] = []
    tools: list[_Tool] | None = None
    steps: list[_Step] | None = None
    sampled: list[_Sampled] | None = None


_CONVERSATION_COLUMNS = frozenset({"prompt", "completion", "chosen", "rejected"})
"""Columns that hold the conversation where there are no `messages`."""


def checked_row(row: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The row, with tools that are JSON text as what they say, as TRL reads them.

    Raises:
        DatasetError: a message, a tool, a step or a sampled turn is of another form; `name` is the row in the message.
    """
    tools = row.get("tools")
    if isinstance(tools, str):
        try:
            row = {**row, "tools": parse_json(tools) if tools.strip() else None}
        except ValueError as error:
            raise DatasetError(f"{name} cannot be used: tools is a text that is not JSON: {error}") from None
    unread = _CONVERSATION_COLUMNS if "messages" in row else frozenset[str]()
    try:
        _Columns.model_validate({column: value for column, value in row.items() if column not in unread})
    except ValidationError as error:
        raise DatasetError(f"{name} cannot be used: {describe(error)}") from None
    return row

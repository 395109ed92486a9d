"""Columns of a published row: what has to be there, and test lists in the two forms that they come in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gumshoe.errors import TaskError
from gumshoe.storage import parse_json

__all__ = ["Row", "json_value", "required", "row_name", "test_ids"]

Row = Mapping[str, Any]


def row_name(row: Row, number: int, column: str = "instance_id") -> str:
    """What a row is called in messages: its task, or its number where it does not say."""
    name = row.get(column)
    return f"task {name}" if isinstance(name, str) and name else f"row {number}"


def required(row: Row, columns: Sequence[str], where: str, *, texts: Sequence[str] = ()) -> None:
    """Raises TaskError where one of `columns` is missing, or one of `texts` among them is not a string."""
    missing = [column for column in columns if row.get(column) is None]
    if missing:
        raise TaskError(f"{where}: column {missing[0]} is missing")
    wrong = [column for column in texts if not isinstance(row[column], str)]
    if wrong:
        raise TaskError(f"{where}: column {wrong[0]} is not a string")


def json_value(row: Row, column: str, where: str, kind: str) -> Any:
    """A value that may be stored as JSON in a string. `kind` is what it should be, for the message."""
    value = row[column]
    if not isinstance(value, str):
        return value
    try:
        return parse_json(value)
    except ValueError as error:
        raise TaskError(f"{where}: column {column} is not {kind}: {error}") from None


def test_ids(row: Row, column: str, where: str) -> tuple[str, ...]:
    """A list of test ids; the classic schema of SWE-bench keeps it as JSON in a string. Raises TaskError."""
    value = json_value(row, column, where, "a JSON list")
    if not isinstance(value, list) or not all(isinstance(test, str) for test in value):
        raise TaskError(f"{where}: column {column} is not a list of test ids")
    return tuple(value)

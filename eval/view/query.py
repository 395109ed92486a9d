"""Queries on the index: rows of the list, search, one episode, the other episodes of a task.

Filters, order and histograms are the page's own work: it holds every row.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Sequence
from typing import Any

__all__ = ["episode_row", "find_row", "live_rows", "rows_after", "search", "siblings", "tree_rows"]

COLUMNS = (
    *("n", "key", "source", "live", "task", "project", "policy", "outcome", "stop", "created", "id"),
    *("steps", "tokens", "cost", "seconds", "strip", "locations", "facts"),
)
SELECT = f"SELECT {', '.join(COLUMNS)} FROM episodes"


def rows_after(connection: sqlite3.Connection, last: int, limit: int) -> tuple[int, list[dict[str, Any]]]:
    """The next finished episodes after number `last`, in the order of the index, and the number of the last one."""
    found = connection.execute(f"{SELECT} WHERE n > ? AND NOT live ORDER BY n LIMIT ?", (last, limit)).fetchall()
    return (found[-1][0] if found else last), [_as_row(row) for row in found]


def live_rows(connection: sqlite3.Connection) -> list[dict[str, Any]]:
    """The episodes in progress."""
    return [_as_row(row) for row in connection.execute(f"{SELECT} WHERE live ORDER BY n")]


def search(connection: sqlite3.Connection, text: str) -> list[str]:
    """The keys of the episodes in which every word of `text` begins a word; what is in quotes is a phrase."""
    terms = _terms(text)
    if not terms:
        return []
    rows = connection.execute(
        "SELECT key FROM episodes WHERE n IN (SELECT rowid FROM words WHERE words MATCH ? "
        "UNION ALL SELECT rowid FROM live_words WHERE live_words MATCH ?)",
        (terms, terms),
    )
    return [key for (key,) in rows]


def find_row(connection: sqlite3.Connection, key: str) -> dict[str, Any] | None:
    """Where an episode's data is: source, file, place, length, live."""
    names = ("source", "file", "place", "length", "live", "id", "task")
    row = connection.execute(f"SELECT {', '.join(names)} FROM episodes WHERE key = ?", (key,)).fetchone()
    return dict(zip(names, row, strict=True)) if row is not None else None


def episode_row(connection: sqlite3.Connection, key: str) -> dict[str, Any] | None:
    """The list's row of an episode, with its facts."""
    row = connection.execute(f"{SELECT} WHERE key = ?", (key,)).fetchone()
    return _as_row(row) if row is not None else None


def siblings(connection: sqlite3.Connection, task: str, limit: int = 50) -> list[dict[str, Any]]:
    """The episodes of a task."""
    rows = connection.execute(f"{SELECT} WHERE task = ? ORDER BY n LIMIT ?", (task, limit))
    return [_as_row(row) for row in rows]


def tree_rows(connection: sqlite3.Connection, source: str, task: str) -> dict[str, dict[str, Any]]:
    """The finished episodes of a task in one source by id, each with where its line is."""
    names = ("file", "place", "length")
    rows = connection.execute(
        f"SELECT {', '.join((*COLUMNS, *names))} FROM episodes WHERE source = ? AND task = ? AND NOT live ORDER BY n "
        "LIMIT 2000",
        (source, task),
    )
    found = [{**_as_row(row[: len(COLUMNS)]), **dict(zip(names, row[len(COLUMNS) :], strict=True))} for row in rows]
    return {row["id"]: row for row in found}


def _terms(text: str) -> str:
    """The words to find, all of them required, as FTS5 reads them; what is in quotes is a phrase."""
    found = re.findall(r'"([^"]+)"|(\S+)', text.replace("\0", " "))
    terms = [phrase or word.replace('"', "") for phrase, word in found]
    return " ".join(f'"{term}"*' for term in terms if re.search(r"\w", term))


def _as_row(row: Sequence[Any]) -> dict[str, Any]:
    found: dict[str, Any] = dict(zip(COLUMNS, row, strict=True))
    del found["n"]
    decoded = {name: json.loads(found[name]) for name in ("locations", "facts")}
    return {**found, "live": bool(found["live"]), **decoded}

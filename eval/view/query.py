"""Questions to the index: pages of the list, distributions, the other episodes of a task.

Filters come from the address of a page, so they are data and never SQL: names and values are bound as parameters.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast, get_args

from gumshoe.errors import ConfigError
from gumshoe.eval.view.index import CORE, CORE_NUMBERS

__all__ = [
    "Filter",
    "Query",
    "distributions",
    "episode_row",
    "fields",
    "find_row",
    "page",
    "read_query",
    "rows_with_facts",
    "siblings",
]

Operator = Literal["is", "not", "has", "<", "<=", ">", ">=", "unknown"]
COLUMNS = ("n", "key", "source", "live", *CORE[1:], *CORE_NUMBERS, "strip")
MOST_ROWS = 500
"""Rows of one page."""
BINS = 24
MOST_VALUES = 12
"""Values of a field that its distribution shows; the rest is one more bar."""
PLOTTED = ("outcome", "policy", "project", "source", "view", "split", "agent", "stop")
PLOTTED_NUMBERS = ("steps", "tokens", "seconds", "cost", "confidence", "failed calls")
ORDER = (*PLOTTED[:1], *PLOTTED_NUMBERS[:4], *PLOTTED[1:], *PLOTTED_NUMBERS[4:])
"""In the order of the page, the most telling ones first."""


@dataclass(frozen=True)
class Filter:
    """One condition: `field` `op` `value`; several `value`s of one field with `is` mean any of them."""

    field: str
    op: Operator
    value: str | float | None


@dataclass(frozen=True)
class Query:
    """Which episodes, in which order; `sort` is a field's name, with a minus in front for the greatest first."""

    filters: tuple[Filter, ...] = ()
    text: str = ""
    sort: str = "-created"
    offset: int = 0
    limit: int = 100

    def without(self, name: str) -> Query:
        """The query without its conditions on one field."""
        return replace(self, filters=tuple(one for one in self.filters if one.field != name))


@dataclass
class _Where:
    """A condition in SQL with its parameters."""

    parts: list[str] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)

    def add(self, sql: str, *values: Any) -> None:
        self.parts.append(sql)
        self.values += values

    @property
    def sql(self) -> str:
        return " AND ".join(self.parts) or "1"


def read_query(given: Mapping[str, str]) -> Query:
    """The query of an address. Raises ConfigError where it cannot be read."""
    try:
        filters = tuple(_filter(item) for item in json.loads(given.get("filters") or "[]"))
        offset, limit = int(given.get("offset") or 0), int(given.get("limit") or 100)
    except (ValueError, TypeError, KeyError) as error:
        raise ConfigError(f"the filters of this address cannot be read: {error}") from None
    return Query(
        filters=filters,
        text=given.get("q") or "",
        sort=given.get("sort") or "-created",
        offset=min(max(offset, 0), 2**40),
        limit=min(max(limit, 1), MOST_ROWS),
    )


def page(connection: sqlite3.Connection, query: Query) -> dict[str, Any]:
    """One page of the list: `total` and the rows from `offset` on."""
    where = _where(query)
    total = connection.execute(f"SELECT count(*) FROM episodes WHERE {where.sql}", where.values).fetchone()[0]
    name, descending = query.sort.removeprefix("-"), query.sort.startswith("-")
    sql, values = _expression(name)
    direction = "DESC" if descending else "ASC"
    rows = connection.execute(
        f"SELECT {', '.join(COLUMNS)} FROM episodes WHERE {where.sql} "
        f"ORDER BY live DESC, {sql} IS NULL, {sql} {direction}, n {direction} LIMIT ? OFFSET ?",
        [*where.values, *values, *values, query.limit, query.offset],
    ).fetchall()
    return {"total": total, "offset": query.offset, "rows": [_as_row(row) for row in rows]}


def distributions(connection: sqlite3.Connection, query: Query) -> list[dict[str, Any]]:
    """How the episodes are spread over the plotted fields; each with all conditions but those on itself.

    Fields that are the same everywhere are left out: there is nothing to choose.
    """
    known = {one["name"] for one in fields(connection)}
    found = [
        _histogram(connection, query, name) if name in PLOTTED_NUMBERS else _values_of(connection, query, name)
        for name in ORDER
        if name in known
    ]
    return [one for one in found if one is not None]


def fields(connection: sqlite3.Connection) -> list[dict[str, Any]]:
    """Every field that can be filtered and sorted by."""
    rows = connection.execute("SELECT name, numeric FROM fields ORDER BY name").fetchall()
    core = [{"name": name, "numeric": name in CORE_NUMBERS} for name in (*CORE, *CORE_NUMBERS)]
    return core + [{"name": name, "numeric": bool(numeric)} for name, numeric in rows]


def find_row(connection: sqlite3.Connection, key: str) -> dict[str, Any] | None:
    """Where an episode's data is: source, file, place, length, live."""
    names = ("source", "file", "place", "length", "live", "id", "task")
    row = connection.execute(f"SELECT {', '.join(names)} FROM episodes WHERE key = ?", (key,)).fetchone()
    return dict(zip(names, row, strict=True)) if row is not None else None


def episode_row(connection: sqlite3.Connection, key: str) -> dict[str, Any] | None:
    """The list's row of an episode, with its facts."""
    row = connection.execute(f"SELECT {', '.join(COLUMNS)}, facts FROM episodes WHERE key = ?", (key,)).fetchone()
    return {**_as_row(row[:-1]), "facts": json.loads(row[-1])} if row is not None else None


def rows_with_facts(connection: sqlite3.Connection, offset: int, limit: int) -> list[dict[str, Any]]:
    """The rows of all episodes with their facts, in the order of the index."""
    rows = connection.execute(
        f"SELECT {', '.join(COLUMNS)}, facts FROM episodes ORDER BY n LIMIT ? OFFSET ?", (limit, offset)
    )
    return [{**_as_row(row[:-1]), "facts": json.loads(row[-1])} for row in rows]


def siblings(connection: sqlite3.Connection, task: str, limit: int = 50) -> list[dict[str, Any]]:
    """The episodes of a task."""
    rows = connection.execute(
        f"SELECT {', '.join(COLUMNS)} FROM episodes WHERE task = ? ORDER BY n LIMIT ?", (task, limit)
    )
    return [_as_row(row) for row in rows]


def _filter(item: Mapping[str, Any]) -> Filter:
    name, op, value = item["field"], item["op"], item.get("value")
    if not isinstance(name, str) or op not in get_args(Operator):
        raise ValueError(f"no operator {op!r}")
    if value is not None and (isinstance(value, bool) or not isinstance(value, str | int | float)):
        raise ValueError(f"{value!r} is no value")
    return Filter(name, cast(Operator, op), value)


def _where(query: Query) -> _Where:
    where = _Where()
    for name in dict.fromkeys(one.field for one in query.filters):
        of_field = [one for one in query.filters if one.field == name]
        sql, bound = _expression(name)
        same = [_same(sql, bound, one.value) for one in of_field if one.op == "is"]
        if same:
            where.add(f"({' OR '.join(part for part, _ in same)})", *(value for _, values in same for value in values))
        for one in of_field:
            _add_condition(where, one, sql, bound)
    terms = _terms(query.text)
    if terms:
        where.add(
            "n IN (SELECT rowid FROM words WHERE words MATCH ? "
            "UNION ALL SELECT rowid FROM live_words WHERE live_words MATCH ?)",
            terms,
            terms,
        )
    return where


def _add_condition(where: _Where, one: Filter, sql: str, bound: Sequence[Any]) -> None:
    if one.op == "not":
        same, values = _same(sql, bound, one.value)
        where.add(f"NOT {same}", *values)
    elif one.op == "has":
        where.add(f"instr(lower({sql}), lower(?)) > 0", *bound, str(one.value))
    elif one.op == "unknown":
        where.add(f"coalesce({sql}, '') = ''", *bound)
    elif one.op != "is":
        value = one.value if one.field in ("created", "id", "task") else _as_number(one.value)
        where.add(f"{sql} {one.op} ?", *bound, value)


def _same(sql: str, bound: Sequence[Any], value: str | float | None) -> tuple[str, list[Any]]:
    """Whether a field has a value, numbers however they are written; the empty text is the unknown one."""
    text = "" if value is None else str(value)
    same = f"coalesce(CAST({sql} AS TEXT), '') = ?"
    number = _as_number(value)
    if number == float("inf"):
        return f"({same})", [*bound, text]
    either = f"({same} OR (typeof({sql}) IN ('integer', 'real') AND {sql} = ?))"
    return either, [*bound, text, *bound, *bound, number]


def _expression(name: str) -> tuple[str, tuple[Any, ...]]:
    """A field in SQL: a column, or a value among the facts."""
    if name in CORE or name in CORE_NUMBERS:
        return name, ()
    quoted = name.replace('"', "")
    return "json_extract(facts, ?)", (f'$."{quoted}"',)


def _terms(text: str) -> str:
    """The words to be found, all of them, as FTS5 reads them; what stands in quotes is a phrase."""
    found = re.findall(r'"([^"]+)"|(\S+)', text.replace("\0", " "))
    terms = [phrase or word.replace('"', "") for phrase, word in found]
    return " ".join(f'"{term}"*' for term in terms if re.search(r"\w", term))


def _values_of(connection: sqlite3.Connection, query: Query, name: str) -> dict[str, Any] | None:
    sql, bound = _expression(name)
    count = f"SELECT coalesce({sql}, ''), count(*) FROM episodes WHERE {{}} GROUP BY 1 ORDER BY 2 DESC, 1"
    every = dict(connection.execute(count.format("1"), bound).fetchall())
    if len([value for value in every if value != ""]) < 2:
        return None
    where = _where(query.without(name))
    chosen = dict(connection.execute(count.format(where.sql), [*bound, *where.values]).fetchall())
    wanted = [one.value for one in query.filters if one.field == name]
    shown = [value for number, value in enumerate(every) if number < MOST_VALUES or value in wanted]
    return {
        "name": name,
        "kind": "values",
        "values": [{"value": value, "count": chosen.get(value, 0), "all": every[value]} for value in shown],
        "rest": len(every) - len(shown),
    }


def _histogram(connection: sqlite3.Connection, query: Query, name: str) -> dict[str, Any] | None:
    sql, bound = _expression(name)
    low, high, whole = connection.execute(
        f"SELECT min({sql}), max({sql}), min({sql} = CAST({sql} AS INTEGER)) FROM episodes", bound * 4
    ).fetchone()
    if low is None or low == high or isinstance(low, str) or isinstance(high, str):
        return None
    width = (high - low) / BINS
    if whole:
        width = max(1, -(-int(high - low + 1) // BINS))
    bins = int((high - low) / width) + (1 if whole else 0)
    bins = min(max(bins, 1), BINS)
    count = (
        f"SELECT min(CAST(({sql} - ?) / ? AS INTEGER), ?), count(*) FROM episodes "
        f"WHERE {sql} IS NOT NULL AND {{}} GROUP BY 1"
    )
    given = [*bound, low, float(width), bins - 1, *bound]
    where = _where(query.without(name))
    every = dict(connection.execute(count.format("1"), given).fetchall())
    chosen = dict(connection.execute(count.format(where.sql), [*given, *where.values]).fetchall())
    return {
        "name": name,
        "kind": "numbers",
        "low": low,
        "width": width,
        "whole": bool(whole),
        "counts": [chosen.get(number, 0) for number in range(bins)],
        "all": [every.get(number, 0) for number in range(bins)],
    }


def _as_row(row: Sequence[Any]) -> dict[str, Any]:
    found: dict[str, Any] = dict(zip(COLUMNS, row, strict=True))
    del found["n"]
    found["live"] = bool(found["live"])
    return found


def _as_number(value: str | float | None) -> float:
    """A bound to compare with. What is none leaves nothing over, so that a typing error shows."""
    try:
        return float(value) if value is not None else float("inf")
    except ValueError:
        return float("inf")

"""Queries, built step by step. Each step returns a new query."""

from .conditions import condition
from .groups import summarise


class Query:
    """A sequence of rows, and conditions that they have to meet."""

    def __init__(self, rows, conditions=()):
        self._rows = list(rows)
        self._conditions = tuple(conditions)

    def where(self, *texts):
        """Keep the rows that meet all conditions."""
        return Query(self._rows, self._conditions + tuple(condition(text) for text in texts))

    def rows(self):
        """Return the rows that are left."""
        rows = self._rows
        for holds in self._conditions:
            rows = (row for row in rows if holds(row))
        return list(rows)

    def count(self):
        """Return how many rows are left."""
        return len(self.rows())

    def order_by(self, *fields):
        """Sort by fields, the first one first; a minus in front sorts downwards. Null comes last."""
        rows = self.rows()
        for field in reversed(fields):
            name = field.lstrip("-")
            known = [row for row in rows if row.get(name) is not None]
            unknown = [row for row in rows if row.get(name) is None]
            known.sort(key=lambda row: row[name], reverse=field.startswith("-"))
            rows = known + unknown
        return Query(rows)

    def limit(self, count, offset=0):
        """Keep `count` rows, after skipping `offset`."""
        return Query(self.rows()[offset : offset + count])

    def select(self, *fields):
        """Return tuples of the fields, or the bare values of a single field."""
        if len(fields) == 1:
            return [row.get(fields[0]) for row in self.rows()]
        return [tuple(row.get(field) for field in fields) for row in self.rows()]

    def join(self, other, on):
        """Return a query over the merged rows of both that agree in the field `on`; null agrees with nothing."""
        index = {}
        for row in other.rows():
            index.setdefault(row.get(on), []).append(row)
        index.pop(None, None)
        return Query({**left, **right} for left in self.rows() for right in index.get(left.get(on), []))

    def group_by(self, key, **columns):
        """Return a query over summaries; see `summarise`."""
        return Query(summarise(self.rows(), key, **columns))

"""What the trainer would do with each row, looked at before it does it.

A trainer drops rows that it has truncated to nothing without a word, and trains the rest of a truncated row as if
nothing were missing. Here every row is rendered, and a row with nothing to train or too long is named.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from gumshoe.errors import DatasetError
from gumshoe.train.data import conversations
from gumshoe.train.render import Rendered, Renderer

if TYPE_CHECKING:
    from datasets import Dataset

__all__ = ["Preflight", "RowReport", "look_at", "prepare"]

_NAMED = 3


@dataclass(frozen=True)
class RowReport:
    """One row: how many tokens it has, how many of them train, and what would become of it at `max_length`."""

    index: int
    id: str
    tokens: int
    trained: int
    truncated: bool
    dropped: bool

    @property
    def sound(self) -> bool:
        """Whether the row trains as it is, whole."""
        return self.trained > 0 and not self.truncated and not self.dropped


@dataclass(frozen=True)
class Preflight:
    """All rows of a split, at one length."""

    rows: tuple[RowReport, ...]
    max_length: int

    @property
    def tokens(self) -> int:
        return sum(row.tokens for row in self.rows)

    @property
    def trained(self) -> int:
        return sum(row.trained for row in self.rows)

    @property
    def untrained(self) -> tuple[RowReport, ...]:
        """Rows without a single token to train."""
        return tuple(row for row in self.rows if row.trained == 0)

    @property
    def too_long(self) -> tuple[RowReport, ...]:
        """Rows that would be truncated, or dropped for that."""
        return tuple(row for row in self.rows if row.truncated)

    def check(self, too_long: Literal["error", "skip"] = "error") -> None:
        """Raises DatasetError where a row has nothing to train, or is too long and may not be left out."""
        if self.untrained:
            raise DatasetError(f"{_some(self.untrained)} nothing to train: no assistant message, or an empty one")
        if self.too_long and (too_long == "error" or len(self.too_long) == len(self.rows)):
            longest = max(row.tokens for row in self.too_long)
            dropped = sum(row.dropped for row in self.too_long)
            raise DatasetError(
                f"{_some(self.too_long)} more than max_length {self.max_length} tokens and would be cut"
                f"{f', {dropped} of them to nothing' if dropped else ''}: "
                f"set max_length to {longest} or more, or too_long: skip"
            )


def look_at(rows: Iterable[tuple[Mapping[str, Any], Rendered]], max_length: int) -> Preflight:
    """Reports on rendered rows."""
    return Preflight(tuple(_report(index, row, done, max_length) for index, (row, done) in enumerate(rows)), max_length)


def prepare(rows: Dataset, renderer: Renderer, max_length: int) -> tuple[Dataset, Preflight]:
    """Renders every row: the `input_ids` and `labels` that the trainer gets, and the report on them.

    Raises:
        DatasetError: a row cannot be rendered.
    """
    from datasets import Dataset, Features, List, Value

    reports: list[RowReport] = []

    def rendered() -> Iterator[dict[str, Any]]:
        for index, row in enumerate(conversations(rows)):
            done = renderer(row)
            reports.append(_report(index, row, done, max_length))
            yield {"input_ids": done.input_ids, "labels": done.labels, "length": len(done.input_ids)}

    features = Features({"input_ids": List(Value("int32")), "labels": List(Value("int32")), "length": Value("int32")})
    ready = Dataset.from_list(list(rendered()), features=features)
    return ready, Preflight(tuple(reports), max_length)


def _report(index: int, row: Mapping[str, Any], done: Rendered, max_length: int) -> RowReport:
    kept = Rendered(done.input_ids[:max_length], done.labels[:max_length])
    truncated = len(done.input_ids) > max_length
    return RowReport(
        index=index,
        id=str(row.get("id") or index),
        tokens=len(done.input_ids),
        trained=done.trained,
        truncated=truncated,
        dropped=truncated and kept.trained == 0,
    )


def _some(rows: Sequence[RowReport]) -> str:
    names = ", ".join(row.id for row in rows[:_NAMED])
    more = f" and {len(rows) - _NAMED} more" if len(rows) > _NAMED else ""
    return f"{'row' if len(rows) == 1 else 'rows'} {names}{more} {'has' if len(rows) == 1 else 'have'}"

"""Makes what the trainer gets of all rows of a dataset, and reports on each row before it trains.

A trainer silently drops rows that it has truncated to nothing, and trains the rest of a truncated row as if nothing
were missing. Here every row is rendered, and a row that is too long or has nothing to train is named.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from gumshoe.errors import DatasetError
from gumshoe.train.rows.dataset import conversations
from gumshoe.train.rows.render import NO_DRIFT, Drift, Rendered, Renderer
from gumshoe.train.rows.samples import Sampling, samples

if TYPE_CHECKING:
    from datasets import Dataset

_NAMED = 3
_BATCH = 256
"""Rows that are in memory at a time while they are prepared."""


@dataclass(frozen=True, slots=True)
class RowReport:
    """One row: how many tokens it has, how many of them train, and whether it would be cut at `max_length`.

    `masked` counts the turns that a rule took out of what trains, `drift` those that train as they were sampled.
    """

    index: int
    id: str
    tokens: int
    trained: int
    too_long: bool
    masked: int
    drift: Drift

    @property
    def sound(self) -> bool:
        """Whether the row trains as it is, whole."""
        return self.trained > 0 and not self.too_long


@dataclass(frozen=True)
class Preflight:
    """All rows of a split, at one length."""

    rows: tuple[RowReport, ...]
    max_length: int

    @property
    def drift(self) -> Drift:
        """How the turns that were sampled differ from what rendering would have made of them."""
        return sum((row.drift for row in self.rows), NO_DRIFT)

    @property
    def untrained(self) -> tuple[RowReport, ...]:
        """Rows without a single token to train."""
        return tuple(row for row in self.rows if row.trained == 0)

    @property
    def too_long(self) -> tuple[RowReport, ...]:
        """Rows that would be cut."""
        return tuple(row for row in self.rows if row.too_long)

    def check(self, too_long: Literal["error", "skip", "windows"] = "error") -> None:
        """Raises DatasetError where a row has nothing to train, or is too long and may not be left out."""
        if self.untrained:
            raise DatasetError(f"{_some(self.untrained)} nothing to train: no assistant message, or all masked out")
        if self.too_long and (too_long != "skip" or len(self.too_long) == len(self.rows)):
            longest = max(row.tokens for row in self.too_long)
            raise DatasetError(
                f"{_some(self.too_long)} more than max_length {self.max_length} tokens and would be cut: "
                f"set max_length to {longest} or more, or too_long: windows or skip"
            )


def reported(rows: Dataset, renderer: Renderer, sampling: Sampling) -> Iterator[tuple[RowReport, Rendered]]:
    """Every sample of the rows, with the report on it. Raises DatasetError where a row cannot be rendered."""
    found = (sample for row in conversations(rows) for sample in samples(row, renderer, sampling))
    for index, sample in enumerate(found):
        rendered = sample.rendered
        report = RowReport(
            index=index,
            id=sample.id or str(index),
            tokens=len(rendered.input_ids),
            trained=rendered.trained,
            too_long=len(rendered.input_ids) > sampling.max_length,
            masked=sample.masked,
            drift=rendered.drift,
        )
        yield report, rendered


def prepare(rows: Dataset, renderer: Renderer, sampling: Sampling, out: Path) -> tuple[Dataset, Preflight]:
    """The `input_ids` and `labels` that the trainer gets, and the report on them. Raises DatasetError.

    They go to the file `out` a batch at a time and are read back from there as they are needed, so that memory does
    not grow with the tokens.
    """
    import pyarrow as pa
    from datasets import Dataset, Features, List, Value

    numbers = List(Value("int32"))
    schema = Features({"input_ids": numbers, "labels": numbers}).arrow_schema
    reports: list[RowReport] = []
    out.parent.mkdir(parents=True, exist_ok=True)
    fresh = out.with_name(f".{out.name}.new")
    with pa.OSFile(str(fresh), "wb") as file, pa.ipc.new_stream(file, schema) as writer:
        ready = reported(rows, renderer, sampling)
        while batch := list(itertools.islice(ready, _BATCH)):
            reports += [report for report, _ in batch]
            columns = [{"input_ids": rendered.input_ids, "labels": rendered.labels} for _, rendered in batch]
            writer.write_batch(pa.RecordBatch.from_pylist(columns, schema))
    fresh.replace(out)
    return Dataset.from_file(str(out)), Preflight(tuple(reports), sampling.max_length)


def _some(rows: Sequence[RowReport]) -> str:
    names = ", ".join(row.id for row in rows[:_NAMED])
    more = f" and {len(rows) - _NAMED} more" if len(rows) > _NAMED else ""
    return f"{'row' if len(rows) == 1 else 'rows'} {names}{more} {'has' if len(rows) == 1 else 'have'}"

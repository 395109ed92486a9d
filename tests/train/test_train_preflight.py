"""Preflight finds the rows that a trainer would cut, drop or train nothing of."""

from __future__ import annotations

from typing import Any

import pytest

from gumshoe.errors import DatasetError
from gumshoe.train.rows.prepare import Preflight, row_report
from gumshoe.train.rows.render import Renderer
from gumshoe.train.rows.samples import Sampling, samples
from support.train.training_rows import conversation, row


def looked_at(renderer: Renderer, rows: list[dict[str, Any]], max_length: int = 4096) -> Preflight:
    sampling = Sampling(max_length)
    found = [sample for item in rows for sample in samples(item, renderer, sampling)]
    return Preflight(tuple(row_report(index, sample, sampling) for index, sample in enumerate(found)), max_length)


def test_sound_rows_pass(renderer: Renderer) -> None:
    report = looked_at(renderer, [row(0), row(1)])
    report.check()
    assert all(item.sound for item in report.rows)
    assert all(item.tokens > item.trained > 0 for item in report.rows)
    assert [item.id for item in report.rows] == ["episode-0", "episode-1"]


def test_a_row_without_assistant_has_nothing_to_train(renderer: Renderer) -> None:
    report = looked_at(renderer, [row(0), row(1, messages=conversation(1)[:2])])
    assert [item.id for item in report.untrained] == ["episode-1"]
    with pytest.raises(DatasetError, match="row episode-1 has nothing to train"):
        report.check("skip")


def test_a_row_that_would_be_cut_is_named(renderer: Renderer) -> None:
    longest = looked_at(renderer, [row(0)]).rows[0].tokens
    report = looked_at(renderer, [row(0)] * 5, longest - 1)
    assert [item.too_long for item in report.rows] == [True] * 5
    with pytest.raises(DatasetError, match=f"and 2 more have more than .* set max_length to {longest} or more"):
        report.check()


def test_rows_too_long_may_be_left_out_but_not_all(renderer: Renderer) -> None:
    long = row(1, messages=[*conversation(1), *conversation(1)[1:]])
    limit = looked_at(renderer, [row(0)]).rows[0].tokens + 1
    looked_at(renderer, [row(0), long], limit).check("skip")
    with pytest.raises(DatasetError, match="would be cut"):
        looked_at(renderer, [long], limit).check("skip")

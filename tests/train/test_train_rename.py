"""Exchanging names and numbers keeps what was copied from where."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from conversations import row
from micro_config import make_config

from gumshoe.train.model import load_tokenizer
from gumshoe.train.rename import RenamingCollator, exchangeable
from gumshoe.train.render import Rendered, Renderer, spans
from gumshoe.train.sft import train
from gumshoe.train.template import training_template


@pytest.fixture(scope="module")
def renderer(start: Path) -> Renderer:
    tokenizer: Any = load_tokenizer(str(start), None)
    return Renderer(tokenizer, training_template(tokenizer))


def collator(start: Path, renderer: Renderer, *, share: float = 1.0, epoch: int = 0, seed: int = 0) -> RenamingCollator:
    tokenizer: Any = load_tokenizer(str(start), None)
    words, numbers = exchangeable(tokenizer, [renderer(row(number)).input_ids for number in range(6)])
    return RenamingCollator(
        lambda rows: {"rows": rows}, words=words, numbers=numbers, share=share, seed=seed, epoch=lambda: epoch
    )


def plain(renderer: Renderer, number: int = 3) -> dict[str, Any]:
    done = renderer(row(number))
    return {"input_ids": done.input_ids, "labels": done.labels}


def changed(collate: RenamingCollator, item: dict[str, Any]) -> Rendered:
    new = collate([item])["rows"][0]
    return Rendered(new["input_ids"], new["labels"])


def test_numbers_move_together(start: Path, renderer: Renderer) -> None:
    new = changed(collator(start, renderer), plain(renderer))
    text = renderer.decode(new.input_ids)
    lines = re.findall(r"\.py:(\d+)", text)
    assert len(set(lines)) == 1
    assert lines[0] != "31"
    assert f'"start": {lines[0]}' in text
    assert "[step 0] 1 failed" in text


def test_labels_follow_the_tokens_and_the_mask_stays(start: Path, renderer: Renderer) -> None:
    old = plain(renderer)
    new = changed(collator(start, renderer), old)
    assert len(new.input_ids) == len(new.labels) >= len(old["input_ids"])
    assert all(label in (-100, token) for token, label in zip(new.input_ids, new.labels, strict=True))
    assert new.input_ids != old["input_ids"]
    assert [kind for kind, _ in spans(new)] == ["read", "trained"] * 3


def test_it_depends_on_seed_row_and_epoch_alone(start: Path, renderer: Renderer) -> None:
    item = plain(renderer)
    first = changed(collator(start, renderer), item)
    assert changed(collator(start, renderer), item) == first
    assert changed(collator(start, renderer, epoch=1), item) != first
    assert changed(collator(start, renderer, seed=1), item) != first


def test_a_share_of_nothing_changes_nothing(start: Path, renderer: Renderer) -> None:
    item = plain(renderer)
    assert changed(collator(start, renderer, share=0.0), item).input_ids == item["input_ids"]


def test_common_words_stay(start: Path, renderer: Renderer) -> None:
    text = renderer.decode(changed(collator(start, renderer), plain(renderer)).input_ids)
    assert text.startswith("<|im_start|>system\nYou look for the cause of failing tests and hand it over.\n")
    assert "[report 0.9] I hand it over." in text


def test_training_with_it_measures_held_out_rows_as_they_are(dataset: Path, tmp_path: Path) -> None:
    outcomes = [
        train(make_config(dataset, tmp_path / name, rename=share, learning_rate=1e-9, max_steps=1, eval_split="test"))
        for name, share in (("without", 0.0), ("with", 1.0))
    ]
    losses = [result.outcome.eval_loss for result in outcomes if result.outcome]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)

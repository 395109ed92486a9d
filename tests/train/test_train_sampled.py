"""Turns train as they were sampled, and what rendering would have changed is counted."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from gumshoe.cli import main
from gumshoe.train.model import load_tokenizer
from gumshoe.train.preflight import look_at
from gumshoe.train.render import UNTRAINED, Rendered, Renderer
from gumshoe.train.sampled import Drift
from gumshoe.train.samples import Sampling, samples
from gumshoe.train.template import training_template
from support.train.micro_config import make_config
from support.train.training_rows import conversation, row, write_dataset

TURN = 2
"""Position of the first message that the assistant wrote."""


@pytest.fixture(scope="module")
def renderer(start: Path) -> Renderer:
    tokenizer: Any = load_tokenizer(str(start), None)
    return Renderer(tokenizer, training_template(tokenizer))


def turn_of(renderer: Renderer, done: Rendered, number: int = 0) -> list[int]:
    """The tokens of one trained turn, with the one that ends it."""
    turns: list[list[int]] = [[]]
    for token, label in zip(done.input_ids, done.labels, strict=True):
        if label == UNTRAINED and turns[-1]:
            turns.append([])
        elif label != UNTRAINED:
            turns[-1].append(token)
    turn = turns[number]
    return turn[: turn.index(end_of(renderer)) + 1]


def rendered(renderer: Renderer, tokens: list[int], **changes: Any) -> Rendered:
    sampled = [{"message": TURN, "token_ids": tokens, "logprobs": None}]
    (sample,) = samples(row(0, sampled=sampled, **changes), renderer, Sampling(4096))
    return sample.rendered


def spelled(renderer: Renderer, text: str) -> list[int]:
    """A text character by character, but for the marks of a call: tokens that no tokenizer makes of it."""
    pieces = re.split("(</?tool_call>)", text)
    parts = [part for piece in pieces for part in ([piece] if piece.endswith("tool_call>") else piece)]
    return [token for part in parts for token in ids_of(renderer, part)]


def ids_of(renderer: Renderer, text: str) -> list[int]:
    encoded: Any = renderer.tokenizer(text)
    return list(encoded["input_ids"])


def end_of(renderer: Renderer) -> int:
    end: Any = renderer.tokenizer.eos_token_id
    return int(end)


def test_what_rendering_gives_anyway_changes_nothing(renderer: Renderer) -> None:
    plain = renderer(row(0))
    done = rendered(renderer, turn_of(renderer, plain))
    assert (done.input_ids, done.labels) == (plain.input_ids, plain.labels)
    assert done.drift == Drift(same=1)


def test_other_tokens_of_the_same_text_train_as_they_were_sampled(renderer: Renderer) -> None:
    plain = renderer(row(0))
    end = end_of(renderer)
    own = turn_of(renderer, plain)
    tokens = [*spelled(renderer, renderer.decode(own[:-1])), end]
    assert len(tokens) > len(own)
    done = rendered(renderer, tokens)
    assert turn_of(renderer, done) == tokens
    assert renderer.decode(done.input_ids) == renderer.decode(plain.input_ids)
    assert done.trained - plain.trained == len(tokens) - len(own)
    assert turn_of(renderer, done, 1) == turn_of(renderer, plain, 1)
    assert done.drift == Drift(retokenized=1, changed=len(tokens))


def test_a_call_in_the_models_own_writing_trains_as_it_was_written(renderer: Renderer) -> None:
    text = '[seek 0.3] What fails?\n<tool_call>{"arguments":{},"name":"eval"}</tool_call>'
    tokens = [*ids_of(renderer, text), end_of(renderer)]
    done = rendered(renderer, tokens)
    assert text in renderer.decode(done.input_ids)
    assert turn_of(renderer, done) == tokens
    assert done.drift == Drift(rewritten=1, changed=len(tokens))


def test_tokens_of_another_tokenizer_are_not_trained(renderer: Renderer) -> None:
    plain = renderer(row(0))
    for tokens in ([5, 6, 7], [10**6], [-1], []):
        done = rendered(renderer, tokens)
        assert (done.input_ids, done.labels, done.drift) == (plain.input_ids, plain.labels, Drift(foreign=1))


def test_the_end_of_a_turn_that_was_cut_off_is_read_and_does_not_train(renderer: Renderer) -> None:
    plain = renderer(row(0))
    done = rendered(renderer, turn_of(renderer, plain)[:-1])
    assert done.input_ids == plain.input_ids
    ends = [at for at, token in enumerate(done.input_ids) if token == end_of(renderer)]
    assert sum(plain.labels[at] != UNTRAINED for at in ends) == 3
    assert sum(done.labels[at] != UNTRAINED for at in ends) == 2


def test_a_masked_turn_stands_as_it_was_sampled_and_does_not_train(renderer: Renderer) -> None:
    text = '[seek 0.3] What fails? <tool_call>{"name": "eval", "arguments": {}}</tool_call>'
    tokens = [*ids_of(renderer, text), end_of(renderer)]
    messages = conversation(0)
    messages[TURN] = {**messages[TURN], "weight": 0}
    done = rendered(renderer, tokens, messages=messages)
    ((start, end),) = done.masked
    assert renderer.decode(done.input_ids[start:end]).startswith(text)
    assert all(label == UNTRAINED for label in done.labels[start:end])
    assert turn_of(renderer, done) == turn_of(renderer, renderer(row(0)), 1)


@pytest.mark.parametrize("sampling", [Sampling(4096, unit="decision"), Sampling(400, windows=True)])
def test_a_sampled_turn_is_found_again_in_its_window(renderer: Renderer, sampling: Sampling) -> None:
    text = '[report 0.9] I hand it over.\n<tool_call>{"name":"report", "arguments":{}}</tool_call>'
    tokens = [*ids_of(renderer, text), end_of(renderer)]
    last = len(conversation(0)) - 1
    item = row(0, sampled=[{"message": last, "token_ids": tokens, "logprobs": None}])
    found = list(samples(item, renderer, sampling))
    assert len(found) > 1
    assert look_at(found, sampling.max_length).drift.turns == 1
    assert [text in renderer.decode(one.rendered.input_ids) for one in found] == [*[False] * (len(found) - 1), True]


def test_preflight_shows_the_drift(renderer: Renderer, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tokens = turn_of(renderer, renderer(row(0)))
    entries = [[{"message": TURN, "token_ids": ids, "logprobs": None}] for ids in (tokens, [5])]
    rows = [row(number, sampled=entry) for number, entry in enumerate(entries)]
    folder = write_dataset(tmp_path / "data", {"train": rows, "test": rows[:1]})
    config = make_config(folder, tmp_path / "run")
    (tmp_path / "train.yaml").write_text(json.dumps(config.model_dump(mode="json")), encoding="utf-8")
    assert main(["preflight", str(tmp_path / "train.yaml")]) == 0
    shown = capsys.readouterr().out
    assert "2 turns with the tokens that were sampled" in shown
    assert "rendering gives the same tokens" in shown
    assert "of another tokenizer, so trained as rendered" in shown

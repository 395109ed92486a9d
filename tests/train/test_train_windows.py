"""Long episodes are cut between turns; each turn trains once, the report included."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gumshoe.errors import DatasetError
from gumshoe.train.model import load_tokenizer
from gumshoe.train.render import Renderer, spans
from gumshoe.train.samples import Sampling, samples
from gumshoe.train.template import training_template
from gumshoe.train.windows import windows
from support.train.training_rows import TOOLS, conversation, row

Messages = list[dict[str, Any]]


def episode(lengths: list[int]) -> Messages:
    """Turns of 10 characters, answered by so many."""
    head = [{"role": "system", "content": "s" * 20}, {"role": "user", "content": "u" * 20}]
    turns: Messages = []
    for step, length in enumerate(lengths):
        turns.append({"role": "assistant", "content": f"turn {step:05}"})
        turns.append({"role": "tool", "content": f"[step {step}] " + "o" * length})
    return [*head, *turns, {"role": "assistant", "content": "report 000"}]


def size(messages: Any) -> int:
    return sum(len(message["content"]) for message in messages)


@given(st.lists(st.integers(0, 400), max_size=12), st.integers(95, 900), st.booleans())
def test_every_turn_trains_once_in_order_and_nothing_is_too_long(lengths: list[int], limit: int, single: bool) -> None:
    messages = episode(lengths)
    found = windows(messages, lambda part: size(part) <= limit, single=single)
    assert found is not None
    written = [window.messages[turn] for window in found for turn in window.trains]
    assert written == [message for message in messages if message["role"] == "assistant"]
    for window in found:
        assert size(window.messages) <= limit
        assert window.messages[-1]["role"] == "assistant" or len(found) == 1
        assert window.messages[:2] == messages[:2]
        assert [messages[origin] for origin in window.origins] == [window.messages[turn] for turn in window.trains]
        if single:
            assert len(window.trains) == 1


def test_an_episode_that_fits_is_one_window_as_it_is() -> None:
    messages = episode([5, 5])
    found = windows(messages, lambda part: True)
    assert found is not None
    (window,) = found
    assert window.messages == messages
    assert window.trains == window.origins == (2, 4, 6)


def test_older_observations_are_left_out_in_the_words_that_the_agent_is_told() -> None:
    found = windows(episode([100, 100, 100, 100]), lambda part: size(part) <= 330) or []
    shown = [message["content"] for message in found[-1].messages if message["role"] == "tool"]
    assert shown[0] == "[step 0] [left out: 100 characters]"
    assert shown[-1].startswith("[step 3] ooo")


def test_a_turn_that_fits_nowhere_is_said_so() -> None:
    assert windows(episode([5]), lambda part: size(part) <= 45) is None


@pytest.fixture(scope="module")
def renderer(start: Path) -> Renderer:
    tokenizer: Any = load_tokenizer(str(start), None)
    return Renderer(tokenizer, training_template(tokenizer))


def trained(renderer: Renderer, sample: Any) -> list[str]:
    return [renderer.decode(tokens) for kind, tokens in spans(sample.rendered) if kind == "trained"]


def test_a_long_row_becomes_rows_that_fit_and_the_report_is_in_one(renderer: Renderer) -> None:
    long = row(0, messages=[*conversation(0)[:-1], *conversation(0)[2:-1] * 3, conversation(0)[-1]])
    limit = renderer.length(row(0)) + 60
    parts = list(samples(long, renderer, Sampling(limit, windows=True, mask=())))
    assert len(parts) > 1
    assert [part.id for part in parts] == [f"episode-0/{number}" for number in range(len(parts))]
    assert all(len(part.rendered.input_ids) <= limit for part in parts)
    texts = [text for part in parts for text in trained(renderer, part)]
    assert len(texts) == 9
    assert all(text.endswith("</tool_call><|im_end|>\n") for text in texts)
    assert texts[-1].startswith("[report 0.9]")


def test_a_turn_too_long_alone_is_named(renderer: Renderer) -> None:
    with pytest.raises(DatasetError, match="row episode-0 has a turn that does not fit into 40 tokens even alone"):
        list(samples(row(0), renderer, Sampling(40, windows=True)))


def test_decisions_are_rows_of_their_own(renderer: Renderer) -> None:
    parts = list(samples(row(0), renderer, Sampling(4096, unit="decision")))
    assert [len(trained(renderer, part)) for part in parts] == [1, 1, 1]
    assert "".join(text for part in parts for text in trained(renderer, part)) == "".join(
        renderer.decode(tokens) for kind, tokens in spans(renderer(row(0))) if kind == "trained"
    )


def test_a_decision_that_was_a_mistake_gives_no_row(renderer: Renderer) -> None:
    steps = [{"step": 0, "failure": None}, {"step": 1, "failure": "unknown_tool"}]
    parts = list(samples(row(0, steps=steps), renderer, Sampling(4096, unit="decision")))
    assert [part.id for part in parts] == ["episode-0/0", "episode-0/2"]


def test_what_is_no_conversation_is_refused(renderer: Renderer) -> None:
    with pytest.raises(DatasetError, match="is not a conversation"):
        list(samples({"id": "x", "messages": [1], "tools": TOOLS}, renderer, Sampling(99, windows=True)))

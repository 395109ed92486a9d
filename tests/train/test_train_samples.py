"""Rows become samples: mistakes are masked, long episodes cut between turns, and sampled tokens kept."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gumshoe.collect.data.export.rows import agent_decision_rows, agent_row
from gumshoe.collect.data.formats import from_atif
from gumshoe.errors import DatasetError
from gumshoe.train.model import load_tokenizer
from gumshoe.train.rows.render import UNTRAINED, Drift, Rendered, Renderer, spans
from gumshoe.train.rows.samples import RULES, Sample, Sampling, masked_turns, samples, windows
from support.train.training_rows import TOOLS, conversation, row

Messages = list[dict[str, Any]]
TURN = 2
"""Position of the first message that the assistant wrote."""


def turn(text: str, name: str | None = None, arguments: Any = None) -> dict[str, Any]:
    calls = [{"id": "c", "type": "function", "function": {"name": name, "arguments": arguments}}] if name else []
    return {"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})}


def told(text: str) -> dict[str, Any]:
    return {"role": "tool", "content": text, "tool_call_id": "c", "name": "x"}


def trained(renderer: Renderer, sample: Sample) -> list[str]:
    return [renderer.decode(tokens) for kind, tokens in spans(sample.rendered) if kind == "trained"]


def an_episode(*turns: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {"id": "e", "messages": [{"role": "user", "content": "Look."}, *turns], "tools": TOOLS, **changes}


ASK = turn("a", "view", {"path": "a.py"})
CHANGE = turn("c", "rewrite", {"path": "a.py"})


@pytest.mark.parametrize(
    ("episode", "rule", "masked"),
    [
        (
            an_episode(
                turn("an unknown tool", "vieew", {}),
                told("[step 0] error: no tool"),
                turn("arguments as text", "view", "path: a.py"),
                told("[step 1] error: no JSON"),
                turn("nothing but words"),
                {"role": "user", "content": "You called no tool."},
                turn("half a call <tool_call>{"),
            ),
            "malformed",
            [1, 3, 5, 7],
        ),
        (
            row(
                0, steps=[{"step": 0}, {"step": 1, "failure": "bad_arguments"}, {"step": 2, "failure": "no_such_file"}]
            ),
            "malformed",
            [4],
        ),
        (an_episode(ASK, told("[step 0] x"), ASK, told("[step 1] x"), ASK, told("[step 2] y"), ASK), "repeated", [3]),
        (an_episode(ASK, told("[step 0] x"), CHANGE, told("[step 1] done"), ASK, told("[step 2] x")), "repeated", []),
        (an_episode(turn("a"), {**turn("b"), "weight": 0}, turn("c")), "weight 0", [2]),
    ],
    ids=["malformed messages", "malformed steps", "a loop", "asked again behind a change", "weight 0"],
)
def test_mistakes_are_found_by_rule(episode: dict[str, Any], rule: Any, masked: list[int]) -> None:
    assert masked_turns(episode, [rule] if rule in RULES else []) == dict.fromkeys(masked, rule)


def test_a_mistake_is_masked_out_and_kept_as_context(renderer: Renderer) -> None:
    steps = [{"step": index, "failure": "bad_arguments" if index == 1 else None} for index in range(3)]
    whole = renderer(row(0))
    (sample,) = samples(row(0, steps=steps), renderer, Sampling(4096))
    assert sample.masked == 1
    assert sample.rendered.input_ids == whole.input_ids
    kinds = [(kind, renderer.decode(tokens)) for kind, tokens in spans(sample.rendered) if kind != "read"]
    assert [kind for kind, _ in kinds] == ["trained", "masked", "trained"]
    assert kinds[1][1].startswith("[seek 0.5] I read total.")
    assert kinds[1][1].endswith("<|im_end|>\n")
    assert sample.rendered.trained == whole.trained - len(next(t for k, t in spans(sample.rendered) if k == "masked"))


def test_a_template_that_marks_turns_together_cannot_mask_one(start: Path) -> None:
    tokenizer: Any = load_tokenizer(str(start), None)
    template = "{% generation %}{% for m in messages %}{{ m.content }}{% endfor %}{% endgeneration %}"
    with pytest.raises(DatasetError, match="row e: single turns cannot be identified: the chat template marks 1 of 2"):
        Renderer(tokenizer, template)(an_episode(turn("a"), turn("b")), masked={0})


def test_prompt_and_completion_rows_train_the_completion(renderer: Renderer) -> None:
    messages = conversation(0)
    decision = {"id": "d", "prompt": messages[:4], "completion": messages[4:5], "tools": TOOLS}
    (sample,) = samples(decision, renderer, Sampling(4096))
    assert [text[:24] for text in trained(renderer, sample)] == ["[seek 0.5] I read total."]


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


def test_older_observations_are_left_out_in_the_words_that_the_agent_is_told() -> None:
    found = windows(episode([100, 100, 100, 100]), lambda part: size(part) <= 330) or []
    shown = [message["content"] for message in found[-1].messages if message["role"] == "tool"]
    assert shown[0] == "[step 0] [left out: 100 characters]"
    assert shown[-1].startswith("[step 3] ooo")


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


def test_decisions_are_rows_of_their_own_and_mistakes_give_none(renderer: Renderer) -> None:
    decisions = Sampling(4096, unit="decision")
    parts = list(samples(row(0), renderer, decisions))
    whole = [renderer.decode(tokens) for kind, tokens in spans(renderer(row(0))) if kind == "trained"]
    assert [trained(renderer, part) for part in parts] == [[text] for text in whole]
    steps = [{"step": 0, "failure": None}, {"step": 1, "failure": "unknown_tool"}]
    assert [part.id for part in samples(row(0, steps=steps), renderer, decisions)] == ["episode-0/0", "episode-0/2"]


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
    assert done.drift == Drift(changed=1)


def test_a_call_in_the_models_own_writing_trains_as_it_was_written(renderer: Renderer) -> None:
    text = '[seek 0.3] What fails?\n<tool_call>{"arguments":{},"name":"eval"}</tool_call>'
    tokens = [*ids_of(renderer, text), end_of(renderer)]
    done = rendered(renderer, tokens)
    assert text in renderer.decode(done.input_ids)
    assert turn_of(renderer, done) == tokens
    assert done.drift == Drift(changed=1)


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


def test_a_turn_that_the_agent_did_not_take_itself_is_shown_and_does_not_train(renderer: Renderer) -> None:
    said = [("user", "Fix it."), ("agent", "I begin."), ("user", "Go on."), ("agent", "I am done.")]
    steps: list[dict[str, Any]] = [{"source": source, "message": text} for source, text in said]
    steps[1]["is_copied_context"] = True
    found = from_atif({"schema_version": "ATIF-v1.8", "agent": {"name": "other"}, "steps": steps})
    rows = [agent_row(found), *agent_decision_rows(found)]
    assert len(rows) == 2
    for made in rows:
        (sample,) = samples(made, renderer, Sampling(4096))
        assert "I begin." in renderer.decode(sample.rendered.input_ids)
        assert "I am done." in "".join(trained(renderer, sample))
        assert "I begin." not in "".join(trained(renderer, sample))


@pytest.mark.parametrize("sampling", [Sampling(4096, unit="decision"), Sampling(400, windows=True)])
def test_a_sampled_turn_is_found_again_in_its_window(renderer: Renderer, sampling: Sampling) -> None:
    text = '[report 0.9] I hand it over.\n<tool_call>{"name":"report", "arguments":{}}</tool_call>'
    tokens = [*ids_of(renderer, text), end_of(renderer)]
    last = len(conversation(0)) - 1
    item = row(0, sampled=[{"message": last, "token_ids": tokens, "logprobs": None}])
    found = list(samples(item, renderer, sampling))
    assert len(found) > 1
    assert sum(sample.rendered.drift.turns for sample in found) == 1
    assert [text in renderer.decode(one.rendered.input_ids) for one in found] == [*[False] * (len(found) - 1), True]

"""Turns that were mistakes do not train, and stay in the conversation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gumshoe.errors import DatasetError
from gumshoe.train.mask import mask_html, mask_text
from gumshoe.train.masked_turns import RULES, masked_turns
from gumshoe.train.model import load_tokenizer
from gumshoe.train.render import Renderer, spans
from gumshoe.train.samples import Sampling, samples
from gumshoe.train.template import training_template
from support.train.training_rows import TOOLS, conversation, row


@pytest.fixture(scope="module")
def renderer(start: Path) -> Renderer:
    tokenizer: Any = load_tokenizer(str(start), None)
    return Renderer(tokenizer, training_template(tokenizer))


def turn(text: str, name: str | None = None, arguments: Any = None) -> dict[str, Any]:
    calls = [{"id": "c", "type": "function", "function": {"name": name, "arguments": arguments}}] if name else []
    return {"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})}


def told(text: str) -> dict[str, Any]:
    return {"role": "tool", "content": text, "tool_call_id": "c", "name": "x"}


def an_episode(*turns: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {"id": "e", "messages": [{"role": "user", "content": "Look."}, *turns], "tools": TOOLS, **changes}


def test_a_sound_episode_has_no_mistakes() -> None:
    assert masked_turns(row(0), RULES) == {}


def test_malformed_calls_are_found_in_the_messages() -> None:
    episode = an_episode(
        turn("a", "vieew", {}),
        told("[step 0] error: no tool"),
        turn("b", "view", "path: a.py"),
        told("[step 1] error: no JSON"),
        turn("nothing but words"),
        {"role": "user", "content": "You called no tool."},
        turn("<tool_call>{"),
    )
    assert masked_turns(episode, ["malformed"]) == {1: "malformed", 3: "malformed", 5: "malformed", 7: "malformed"}
    assert masked_turns(episode, ["repeated"]) == {}


def test_malformed_calls_are_found_in_the_step_table() -> None:
    steps = [
        {"step": 0, "failure": None},
        {"step": 1, "failure": "bad_arguments"},
        {"step": 2, "failure": "no_such_file"},
    ]
    assert masked_turns(row(0, steps=steps), ["malformed"]) == {4: "malformed"}


def test_without_tools_nothing_is_malformed() -> None:
    assert masked_turns(an_episode(turn("a"), turn("b"), tools=None), ["malformed"]) == {}


def test_a_loops_repetitions_are_found_and_its_first_round_is_not() -> None:
    ask = turn("a", "view", {"path": "a.py"})
    episode = an_episode(
        ask, told("[step 0] x"), ask, told("[step 1] x"), ask, told("[step 2] y"), turn("b", "eval", {})
    )
    assert masked_turns(episode, ["repeated"]) == {3: "repeated"}


def test_asking_again_behind_a_change_is_no_repetition() -> None:
    ask = turn("a", "eval", {})
    change = turn("c", "rewrite", {"path": "a.py"})
    episode = an_episode(ask, told("[step 0] 1 failed"), change, told("[step 1] done"), ask, told("[step 2] 1 failed"))
    assert masked_turns(episode, ["repeated"]) == {}


def test_a_message_of_weight_0_never_trains() -> None:
    messages = conversation(0)
    messages[2]["weight"] = 0
    assert masked_turns(row(0, messages=messages), []) == {2: "weight 0"}


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


def test_rules_can_be_turned_off(renderer: Renderer) -> None:
    steps = [{"step": 0, "failure": "bad_arguments"}]
    (sample,) = samples(row(0, steps=steps), renderer, Sampling(4096, mask=()))
    assert sample.rendered == renderer(row(0))


def test_masked_turns_are_yellow(renderer: Renderer) -> None:
    done = renderer(row(0), masked={0})
    text = mask_text(renderer, done)
    assert [str(span.style) for span in text.spans if span.style != "dim"] == [
        "black on yellow",
        "black on green",
        "black on green",
    ]
    assert '<mark class="masked">[seek 0.3] What fails?' in mask_html(renderer, [("r", done)], "")


def test_a_template_that_marks_turns_together_cannot_mask_one(start: Path) -> None:
    tokenizer: Any = load_tokenizer(str(start), None)
    template = "{% generation %}{% for m in messages %}{{ m.content }}{% endfor %}{% endgeneration %}"
    with pytest.raises(DatasetError, match="row e: single turns cannot be identified: the chat template marks 1 of 2"):
        Renderer(tokenizer, template)(an_episode(turn("a"), turn("b")), masked={0})


def test_prompt_and_completion_rows_train_the_completion(renderer: Renderer) -> None:
    messages = conversation(0)
    decision = {"id": "d", "prompt": messages[:4], "completion": messages[4:5], "tools": TOOLS}
    (sample,) = samples(decision, renderer, Sampling(4096))
    trained = [renderer.decode(tokens) for kind, tokens in spans(sample.rendered) if kind == "trained"]
    assert [text[:24] for text in trained] == ["[seek 0.5] I read total."]

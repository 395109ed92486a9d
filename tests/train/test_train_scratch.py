"""A model from nothing: its tokenizer keeps all text, and its weights can copy before any training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conversations import TOOLS, conversation, row
from hypothesis import given, settings
from hypothesis import strategies as st
from micro_config import MICRO

from gumshoe.errors import ConfigError
from gumshoe.train.config import ScratchSection
from gumshoe.train.model import load_tokenizer
from gumshoe.train.scratch import make_scratch
from gumshoe.train.tokenizer import NUMBERS, TAGS, repeated_phrases


@pytest.fixture(scope="module")
def tokenizer(start: Path) -> Any:
    return load_tokenizer(str(start), None)


@settings(max_examples=200)
@given(text=st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_survives_the_tokenizer(tokenizer: Any, text: str) -> None:
    assert tokenizer.decode(tokenizer.encode(text), clean_up_tokenization_spaces=False) == text


@given(number=st.integers(0, NUMBERS - 1))
def test_a_line_number_is_one_token(tokenizer: Any, number: int) -> None:
    assert len(tokenizer.encode(str(number))) == 1


@pytest.mark.parametrize("tag", TAGS)
def test_tags_of_calls_are_tokens_that_decoding_keeps(tokenizer: Any, tag: str) -> None:
    ids = tokenizer.encode(tag)
    assert len(ids) == 1
    assert tokenizer.decode(ids, skip_special_tokens=True) == tag


def test_a_turn_ends_with_the_end_token(tokenizer: Any) -> None:
    assert tokenizer.eos_token == "<|im_end|>"
    assert tokenizer.pad_token == "<|endoftext|>"


def test_what_all_conversations_share_is_short(tokenizer: Any) -> None:
    """The system prompt and the tools, some 800 characters, are a few tokens."""
    prompt = conversation(0)[:1]
    ids = tokenizer.apply_chat_template(prompt, tools=TOOLS, return_dict=True)["input_ids"]
    assert len(ids) < 40


def test_phrases_are_the_shared_lines_and_the_keys_of_calls() -> None:
    call = '<tool_call>\n{"name": "view", "arguments": {"path": "a.py", "start": 3}}\n</tool_call>'
    texts = [f"a line that all share\nand one of row {number}\n{call}" for number in range(5)]
    assert repeated_phrases(texts) == [
        "a line that all share",
        '", "start": ',
        '{"name": "view", "arguments": {"path": "',
        "}}\n",
    ] or set(repeated_phrases(texts)) >= {"a line that all share", '", "start": '}
    assert repeated_phrases([]) == []


def test_the_fresh_model_copies_what_it_has_seen(tmp_path: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    make_scratch(ScratchSection.model_validate({}), [row(number) for number in range(3)], tmp_path, seed=1)
    model: Any = AutoModelForCausalLM.from_pretrained(tmp_path).eval()
    once = torch.randint(0, model.config.vocab_size, (2, 300), generator=torch.Generator().manual_seed(0))
    twice = torch.cat([once, once], dim=1)
    with torch.no_grad():
        guesses = model(twice).logits.argmax(-1)
    assert (guesses[:, 303:-1] == twice[:, 304:]).float().mean() > 0.95
    assert (guesses[:, 3:299] == twice[:, 4:300]).float().mean() < 0.05


def test_the_seed_decides_the_weights(tmp_path: Path) -> None:
    from safetensors.torch import load_file

    rows = [row(0), row(1)]
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        make_scratch(ScratchSection.model_validate(MICRO), rows, tmp_path / name, seed=seed)
    a, b, c = (load_file(tmp_path / name / "model.safetensors") for name in "abc")
    assert all(a[key].equal(b[key]) for key in a)
    assert any(not a[key].equal(c[key]) for key in a)


def test_without_copying_the_weights_are_noise(tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    section = ScratchSection.model_validate({**MICRO, "copying": False, "heads": 1})
    make_scratch(section, [row(0), row(1)], tmp_path, seed=0)
    model: Any = AutoModelForCausalLM.from_pretrained(tmp_path)
    assert float(model.model.layers[0].self_attn.q_norm.weight.detach().min()) == 1.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"context": 3}, "set scratch.heads higher"), ({"hidden": 32}, "scratch.hidden 32 is too narrow")],
)
def test_sizes_that_cannot_copy_are_refused(changes: dict[str, int], message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        make_scratch(ScratchSection.model_validate({**MICRO, **changes}), [row(0)], tmp_path, seed=0)


def test_no_phrase_swallows_the_end_of_a_turn() -> None:
    texts = [f"<|im_start|>system\na shared line of text\n</tool_call><|im_end|>\nrow {number}" for number in range(3)]
    assert repeated_phrases(texts) == ["a shared line of text"]

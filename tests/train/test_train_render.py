"""What trains, decoded; and that what is trained is what is served."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from gumshoe.errors import ConfigError, DatasetError
from gumshoe.train.model import load_tokenizer, served_template, training_template
from gumshoe.train.rows.render import UNTRAINED, Renderer, spans, turn_starts
from support.train.training_rows import TOOLS, conversation, row


@pytest.fixture(scope="module")
def tokenizer(start: Path) -> Any:
    return load_tokenizer(str(start), None)


def with_template_of_trl(start: Path, name: str) -> Any:
    """A tokenizer with a chat template that TRL knows."""
    import trl.chat_template_utils as known

    tokenizer: Any = load_tokenizer(str(start), None)
    tokenizer.chat_template = getattr(known, f"{name}_chat_template")
    return tokenizer


def prompts_of(tokenizer: Any, messages: Sequence[Any]) -> list[list[int]]:
    """What a server gives the model to read before each of the assistant's turns."""
    return [
        tokenizer.apply_chat_template(messages[:index], tools=TOOLS, add_generation_prompt=True, return_dict=True)[
            "input_ids"
        ]
        for index, message in enumerate(messages)
        if message["role"] == "assistant"
    ]


def test_exactly_what_the_assistant_wrote_trains(renderer: Renderer) -> None:
    trained = [renderer.decode(tokens) for kind, tokens in spans(renderer(row(3))) if kind == "trained"]
    assert trained == [
        '[seek 0.3] What fails?\n<tool_call>\n{"name": "eval", "arguments": {}}\n</tool_call><|im_end|>\n',
        "[seek 0.5] I read total.\n<tool_call>\n"
        '{"name": "view", "arguments": {"path": "shop/part3.py", "start": 31}}\n</tool_call><|im_end|>\n',
        "[report 0.9] I hand it over.\n<tool_call>\n"
        '{"name": "report", "arguments": {"locations": [{"path": "shop/part3.py", "start": 31, "end": 31, '
        '"why": "café"}], "hypothesis": "shop/part3.py:31 is wrong"}}\n</tool_call><|im_end|>\n',
    ]


def test_the_row_decodes_to_the_rendered_conversation(renderer: Renderer, tokenizer: Any) -> None:
    done = renderer(row(2))
    text = tokenizer.apply_chat_template(conversation(2), tools=TOOLS, tokenize=False)
    assert renderer.decode(done.input_ids) == text
    assert all(label in (UNTRAINED, token) for token, label in zip(done.input_ids, done.labels, strict=True))


def test_the_prompt_of_each_turn_is_the_start_of_the_trained_row(renderer: Renderer, tokenizer: Any) -> None:
    """The server renders the conversation so far and asks; it must see the very tokens that were trained on."""
    tokenizer.chat_template = served_template(training_template(tokenizer))
    done = renderer(row(4))
    for prompt in prompts_of(tokenizer, conversation(4)):
        assert done.input_ids[: len(prompt)] == prompt
        assert done.labels[len(prompt) - 1] == UNTRAINED
        assert done.labels[len(prompt)] == done.input_ids[len(prompt)]


@pytest.mark.parametrize("name", ["qwen3", "qwen2_5", "qwen3_instruct_2507"])
def test_templates_that_trl_knows_are_served_as_trained(name: str, start: Path) -> None:
    from trl.chat_template_utils import has_generation_markers

    tokenizer = with_template_of_trl(start, name)
    marked = training_template(tokenizer)
    trained = Renderer(tokenizer, marked)(row(1))
    tokenizer.chat_template = served_template(marked)
    assert not has_generation_markers(tokenizer.chat_template)
    assert (
        tokenizer.apply_chat_template(conversation(1), tools=TOOLS, return_dict=True)["input_ids"] == trained.input_ids
    )


@pytest.mark.parametrize("name", ["qwen2_5", "qwen3_instruct_2507"])
def test_what_a_server_writes_to_begin_a_turn_does_not_train(name: str, start: Path) -> None:
    tokenizer = with_template_of_trl(start, name)
    marked = training_template(tokenizer)
    done = Renderer(tokenizer, marked)(row(2))
    tokenizer.chat_template = served_template(marked)
    prompts = prompts_of(tokenizer, conversation(2))
    assert turn_starts(done) == [len(prompt) for prompt in prompts]
    assert all(done.input_ids[: len(prompt)] == prompt for prompt in prompts)


def test_a_marked_template_of_ones_own_is_taken(start: Path) -> None:
    tokenizer: Any = load_tokenizer(str(start), None)
    tokenizer.chat_template = (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.role == 'assistant' %}"
        "{% generation %}{{ m.content }}<|im_end|>{% endgeneration %}{% else %}{{ m.content }}<|im_end|>{% endif %}"
        "{% endfor %}"
    )
    renderer = Renderer(tokenizer, training_template(tokenizer))
    trained = [renderer.decode(tokens) for kind, tokens in spans(renderer(row(0))) if kind == "trained"]
    assert trained[0] == "[seek 0.3] What fails?<|im_end|>"


def test_an_unmarked_template_of_ones_own_is_refused(start: Path) -> None:
    tokenizer: Any = load_tokenizer(str(start), None)
    tokenizer.chat_template = "{% for m in messages %}{{ m.content }}{% endfor %}"
    with pytest.raises(ConfigError, match="does not mark what the assistant writes"):
        training_template(tokenizer)


def test_a_tokenizer_without_template_is_refused(start: Path) -> None:
    tokenizer: Any = load_tokenizer(str(start), None)
    tokenizer.chat_template = None
    with pytest.raises(ConfigError, match="has no chat template"):
        training_template(tokenizer)


def test_what_the_template_cannot_render_is_refused(renderer: Renderer) -> None:
    messages = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y", "tool_calls": [3]}]
    with pytest.raises(DatasetError, match="a row cannot be rendered"):
        renderer({"messages": messages})

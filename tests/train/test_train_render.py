"""What trains, decoded; and that what is trained is what is served."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from gumshoe.errors import ConfigError, DatasetError
from gumshoe.tools.calls.parsing import split_text_calls
from gumshoe.train.model import (
    check_tools,
    load_tokenizer,
    read_template,
    served_template,
    template_to_serve,
    training_template,
)
from gumshoe.train.rows.render import UNTRAINED, Renderer, encode_chat, spans, turn_starts
from support.train.training_rows import TOOLS, conversation, row


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


def test_the_prompt_of_each_turn_is_the_start_of_the_trained_row(renderer: Renderer, start: Path) -> None:
    tokenizer: Any = load_tokenizer(str(start), None)
    tokenizer.chat_template = served_template(training_template(tokenizer))
    done = renderer(row(4))
    for prompt in prompts_of(tokenizer, conversation(4)):
        assert done.input_ids[: len(prompt)] == prompt
        assert done.labels[len(prompt) - 1] == UNTRAINED
        assert done.labels[len(prompt)] == done.input_ids[len(prompt)]


@pytest.mark.parametrize("name", ["qwen3", "qwen2_5", "qwen3_instruct_2507"])
def test_templates_that_trl_knows_are_served_as_trained(name: str, start: Path) -> None:
    """A server renders the conversation so far and asks; it must see the very tokens that were trained on."""
    from trl.chat_template_utils import has_generation_markers

    tokenizer = with_template_of_trl(start, name)
    marked = training_template(tokenizer)
    done = Renderer(tokenizer, marked)(row(2))
    tokenizer.chat_template = served_template(marked)
    assert not has_generation_markers(tokenizer.chat_template)
    whole = tokenizer.apply_chat_template(conversation(2), tools=TOOLS, return_dict=True)
    assert done.input_ids == whole["input_ids"]
    assert all(label in (UNTRAINED, token) for token, label in zip(done.input_ids, done.labels, strict=True))
    if name == "qwen3":  # It begins a turn with an empty thought, which the model does not write.
        return
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


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("{% for m in messages %}{{ m.content }}{% endfor %}", "does not mark what the assistant writes"),
        (None, "has no chat template"),
    ],
)
def test_a_template_that_does_not_say_what_trains_is_refused(template: str | None, said: str, start: Path) -> None:
    tokenizer: Any = load_tokenizer(str(start), None)
    tokenizer.chat_template = template
    with pytest.raises(ConfigError, match=said):
        training_template(tokenizer)


def test_what_the_template_cannot_render_is_refused(renderer: Renderer) -> None:
    messages = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y", "tool_calls": [3]}]
    with pytest.raises(DatasetError, match="a row cannot be rendered"):
        renderer({"messages": messages})


@pytest.mark.parametrize("name", ["llama3_1", "llama3_2"])
def test_llamas_own_template_is_refused_and_another_one_named(name: str, start: Path) -> None:
    """It leaves out the text beside a call, refuses two calls in a turn, and says which day it is."""
    tokenizer = with_template_of_trl(start, name)
    with pytest.raises(ConfigError, match=r"leaves out the text beside a call: .*chat_template: llama3"):
        check_tools(tokenizer, tokenizer.chat_template)
    with pytest.raises(ConfigError, match=r"does not mark .*chat_template: llama3"):
        training_template(tokenizer)
    # A table of rows has null where a message has no calls.
    table = [{"tool_calls": None, **message} for message in conversation(1)]
    rendered, same = (encode_chat(tokenizer, tokenizer.chat_template, rows, TOOLS) for rows in (table, conversation(1)))
    assert rendered["input_ids"] == same["input_ids"]


def test_a_row_is_rendered_as_llamas_models_write_it(start: Path) -> None:
    tokenizer: Any = load_tokenizer(str(start), None)
    tokenizer.chat_template = read_template("llama3")
    check_tools(tokenizer, tokenizer.chat_template)
    renderer = Renderer(tokenizer, training_template(tokenizer))
    table = [{"tool_calls": None, **message} for message in conversation(3)[:4]]
    done = renderer({"messages": table, "tools": TOOLS})
    trained = [tokenizer.decode(tokens) for kind, tokens in spans(done) if kind == "trained"]
    assert trained == ['[seek 0.3] What fails?\n{"name": "eval", "parameters": {}}<|eot_id|>']
    text = tokenizer.decode(done.input_ids)
    assert "<|start_header_id|>ipython<|end_header_id|>\n\n[step 0] 1 failed\nshop/part3.py:31 in total" in text
    said, calls = split_text_calls(trained[0].removesuffix("<|eot_id|>"), prefix="c", offered={"eval"})
    assert (said, [each.name for each in calls]) == ("[seek 0.3] What fails?", ["eval"])
    table[2]["tool_calls"] = [*(table[2]["tool_calls"] or ()), *(table[2]["tool_calls"] or ())]
    with pytest.raises(DatasetError, match="Llama's models make one call a turn, and a turn has 2"):
        renderer({"messages": table, "tools": TOOLS})


def test_a_row_is_the_same_on_another_day(start: Path) -> None:
    tokenizer: Any = load_tokenizer(str(start), None)
    tokenizer.chat_template = (
        "{{ strftime_now('%d %b %Y') }}{% for m in messages %}{% if m.role == 'assistant' %}"
        "{% generation %}{{ m.content }}{% endgeneration %}{% else %}{{ m.content }}{% endif %}{% endfor %}"
    )
    marked = training_template(tokenizer)
    assert tokenizer.decode(Renderer(tokenizer, marked)(row(0)).input_ids).startswith("26 Jul 2024")
    assert "strftime_now" not in template_to_serve(tokenizer, marked, [row(0)])

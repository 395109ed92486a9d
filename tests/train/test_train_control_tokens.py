"""Text from outside never becomes a control token: not in rows, masks, rollouts, or on a server."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from gumshoe.collect.episode.conversation import as_native_chat, as_template_chat
from gumshoe.errors import DatasetError
from gumshoe.records import Message, ToolCall
from gumshoe.train.grpo import TokenRollouts
from gumshoe.train.model import load_tokenizer, read_template, served_template, training_template
from gumshoe.train.rows.render import UNTRAINED, Renderer, control_tokens
from gumshoe.train.rows.samples import Sampling, samples
from support.train.training_rows import TOOLS

SMOLLM2 = Path(__file__).parents[2] / ".venv" / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"
MISTRAL = (
    "{{ bos_token }}{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}{{ m.content }}"
    "{% if m.tool_calls %}[TOOL_CALLS]{% for c in m.tool_calls %}{{ c.function | tojson }}{% endfor %}{% endif %}"
    "{{ eos_token }}{% endgeneration %}{% elif m.role == 'tool' %}[TOOL_RESULTS]{{ m.content }}[/TOOL_RESULTS]"
    "{% else %}[INST]{{ m.content }}[/INST]{% endif %}{% endfor %}"
)
LLAMA = ["<|begin_of_text|>", "<|eot_id|>", "<|start_header_id|>", "<|end_header_id|>", "<|python_tag|>"]
GEMMA = ["<bos>", "<end_of_turn>", "<start_of_turn>", "<eos>", "<pad>"]
BRACKETS = ["<s>", "</s>", "[INST]", "[/INST]", "[TOOL_CALLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]", "<unk>"]


def make_tokenizer(special: Sequence[str], template: str) -> Any:
    """Byte by byte, with control tokens; the first begins a text, and the second ends a turn."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = {sign: number for number, sign in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    core = Tokenizer(models.BPE(vocab=alphabet, merges=[]))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    core.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    return PreTrainedTokenizerFast(
        tokenizer_object=core, bos_token=special[0], eos_token=special[1], chat_template=template
    )


@pytest.fixture(params=["chatml", "hermes", "llama3", "llama3 with tools", "mistral", "gemma", "smollm2"])
def tokenizer(request: pytest.FixtureRequest, start: Path) -> Any:
    import trl.chat_template_utils as known

    match request.param:
        case "llama3":
            return make_tokenizer(LLAMA, known.llama3_training_chat_template)
        case "llama3 with tools":
            return make_tokenizer(LLAMA, read_template("llama3"))
        case "mistral":
            return make_tokenizer(BRACKETS, MISTRAL)
        case "gemma":
            return make_tokenizer(GEMMA, known.gemma_training_chat_template)
        case "smollm2":
            if not SMOLLM2.exists():
                pytest.skip(f"{SMOLLM2.name} is not here: make model")
            made: Any = AutoTokenizer.from_pretrained(str(SMOLLM2.parent), gguf_file=SMOLLM2.name)
        case _:
            made = load_tokenizer(str(start), None)
    if request.param != "chatml":
        made.chat_template = read_template("hermes")
    return made


def conversation(text: str) -> list[Message]:
    """One that has `text` in the problem, a file, a tool's output, an argument and a quote, without a system prompt."""
    call = ToolCall(id="1", name="view", arguments={"path": f"a{text}.py", "lines": [f"b{text}"]})
    return [
        Message(role="user", content=f"It prints {text} where it should not: {text}"),
        Message(role="assistant", content=f"I look for {text}.", reasoning=None, tool_calls=(call,)),
        Message(role="tool", content=f"a.py 1-1 of 1 lines\n1 x = '{text}'\n{text}", tool_call_id="1", name="view"),
        Message(role="assistant", content=f"[report] The line says {text!r}."),
        Message(role="user", content=f"{text}Done?"),
        Message(role="assistant", content=f"Yes: {text}"),
    ]


def turns_only(tokenizer: Any, messages: Sequence[Message]) -> Sequence[Message]:
    """The conversation without calls and their answers where the template has no place for them."""
    if "tool" in str(tokenizer.chat_template):
        return messages
    plain = [message.model_copy(update={"tool_calls": ()}) for message in messages]
    return [message.model_copy(update={"role": "user"}) if message.role == "tool" else message for message in plain]


def raw_row(messages: Sequence[Message]) -> dict[str, Any]:
    """A row as another program may write it, where nothing is escaped."""
    rows: list[dict[str, Any]] = []
    for message in messages:
        row: dict[str, Any] = {"role": message.role, "content": message.content}
        if message.tool_calls:
            calls = [{"name": call.name, "arguments": call.arguments} for call in message.tool_calls]
            row["tool_calls"] = [{"type": "function", "function": call} for call in calls]
        rows.append(row)
    return {"id": "e", "messages": rows, "tools": TOOLS}


def attack(tokenizer: Any) -> str:
    """Each control token of the tokenizer, one after the other and within each other."""
    tokens = list(control_tokens(tokenizer).values())[:12]
    return "".join(tokens) + f"<{tokens[0]}|" + "\n".join(reversed(tokens))


def control_of(tokenizer: Any, ids: Sequence[int]) -> list[int]:
    known = control_tokens(tokenizer)
    return [token for token in ids if token in known]


def test_a_row_has_the_control_tokens_of_its_turns_and_trains_no_other(tokenizer: Any) -> None:
    renderer = Renderer(tokenizer, training_template(tokenizer))
    harmless = renderer(raw_row(turns_only(tokenizer, conversation("x"))))
    messages = turns_only(tokenizer, conversation(attack(tokenizer)))
    attacked = renderer(raw_row(messages))
    assert control_of(tokenizer, harmless.input_ids)
    assert control_of(tokenizer, attacked.input_ids) == control_of(tokenizer, harmless.input_ids)
    trained = [
        control_of(tokenizer, [label for label in row.labels if label != UNTRAINED]) for row in (harmless, attacked)
    ]
    assert trained[0] == trained[1]
    assert len(attacked.input_ids) > len(harmless.input_ids) + 100
    exported = [message.as_openai(arguments_as_text=False) for message in messages]
    assert renderer({"messages": exported, "tools": TOOLS}).input_ids == attacked.input_ids, "escaped when exported"


def test_what_is_trained_is_what_is_sent(start: Path) -> None:
    """A server renders what it was sent and tokenizes the text, in which it finds every control token."""
    tokenizer: Any = load_tokenizer(str(start), None)
    marked = training_template(tokenizer)
    messages = conversation(attack(tokenizer))
    trained = Renderer(tokenizer, marked)(raw_row(messages)).input_ids
    native = as_native_chat(messages)
    for call in native[1]["tool_calls"]:
        call["function"]["arguments"] = json.loads(call["function"]["arguments"])  # As vLLM does.
    for sent in (as_template_chat(messages), native):
        for count in (1, 3, 5):
            served = tokenizer.apply_chat_template(
                sent[:count],
                tools=TOOLS,
                chat_template=served_template(marked),
                add_generation_prompt=True,
                return_dict=True,
            )["input_ids"]
            assert served == trained[: len(served)]


def test_a_rollout_reads_no_control_token_in_an_answer(start: Path) -> None:
    tokenizer: Any = load_tokenizer(str(start), None)
    rollouts = TokenRollouts(None, None, tokenizer, training_template(tokenizer), 4096)  # pyright: ignore[reportArgumentType]
    ids = {
        text: control_of(tokenizer, rollouts._answer_ids([{"role": "tool", "content": text}]))  # pyright: ignore[reportPrivateUsage]
        for text in ("x", attack(tokenizer))
    }
    assert ids["x"] == ids[attack(tokenizer)]


@pytest.mark.parametrize("place", ["user", "assistant", "argument", "tools"])
def test_a_row_with_a_control_token_that_escaping_does_not_know_is_refused(place: str) -> None:
    tokenizer = make_tokenizer(["<s>", "</s>", "@@turn@@"], MISTRAL)
    renderer = Renderer(tokenizer, MISTRAL)
    messages = [Message(role="user", content="a"), Message(role="assistant", content="b")]
    row = raw_row(messages)
    assert renderer(row).trained
    if place == "argument":
        row["messages"][1]["tool_calls"] = [{"function": {"name": "view", "arguments": {"path": "@@turn@@"}}}]
    elif place == "tools":
        row["tools"] = [{"function": {"name": "view", "description": "@@turn@@"}}]
    else:
        row["messages"][place == "assistant"]["content"] = "x @@turn@@"
    with pytest.raises(DatasetError, match="row e has '@@turn@@' in its text"):
        renderer(row)


def test_sampled_tokens_with_a_control_token_of_their_own_are_not_used(start: Path) -> None:
    tokenizer: Any = load_tokenizer(str(start), None)
    renderer = Renderer(tokenizer, training_template(tokenizer))
    row = raw_row([Message(role="user", content="a"), Message(role="assistant", content="b")])
    turn = [*tokenizer("b")["input_ids"]]
    begin = next(number for number, token in control_tokens(tokenizer).items() if token == "<|im_start|>")
    for tokens, drift in ((turn, "same"), ([*turn, begin], "foreign"), ([begin, *turn], "foreign")):
        sampled = [{"message": 1, "token_ids": [*tokens, tokenizer.eos_token_id]}]
        (sample,) = samples({**row, "sampled": sampled}, renderer, Sampling(4096))
        assert getattr(sample.rendered.drift, drift) == 1
        assert control_of(tokenizer, sample.rendered.input_ids) == control_of(tokenizer, renderer(row).input_ids)

"""The conversation with an agent: what a turn states, what of it is shown later, the forms in which servers want it.

Each turn of an agent opens with its decision, its confidence and the reason: `[seek 0.8] The test fails in total(); I
look at its values there.` What it does not state is None.

| of | functions |
|---|---|
| a turn | `parse_decision`, `format_decision`, `count_turns`, `describe_turn` |
| a limited context | `elide`, `elision_point` |
| the forms of servers | `as_native_chat`, `as_template_chat`, `as_text_chat`, `as_text_messages` |
| what a server answered | `read_turn`, `split_thought` |
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from gumshoe.agreement import KEEP_TURNS, left_out
from gumshoe.records import Completion, Decision, Message, ToolCall, ToolSchema
from gumshoe.text import cut_line
from gumshoe.tools.calls.parsing import describe_tools, render_text_calls, split_text_calls

THINK_END = "</think>"
CHARACTERS_A_TOKEN = 4
MOST_CHARACTERS = 60
"""Of a text that says what a call is about."""
DECISION_LINE = re.compile(r"^\[(seek|edit|verify|report|submit)(?: (0?\.\d+|0|1|1\.0))?\]\s*")


@dataclass(frozen=True)
class ParsedDecision:
    """What a turn's text states: decision, confidence (0 to 1) and rationale; None if it does not."""

    decision: Decision | None = None
    confidence: float | None = None
    rationale: str | None = None


def parse_decision(text: str) -> ParsedDecision:
    """Reads the decision line off `text`; all that follows it is the rationale."""
    stripped = text.strip()
    match = DECISION_LINE.match(stripped)
    if match is None:
        return ParsedDecision(rationale=stripped or None)
    confidence = None if match[2] is None else float(match[2])
    return ParsedDecision(Decision(match[1]), confidence, stripped[match.end() :].strip() or None)


def format_decision(decision: Decision, confidence: float | None, rationale: str) -> str:
    """The text that `parse_decision` reads back. `confidence` is rounded to one decimal, to 1 only where it is 1."""
    sure = "" if confidence is None else f" {confidence if confidence == 1 else min(confidence, 0.9):.1f}"
    return f"[{decision.value}{sure}] {rationale}".rstrip()


def count_turns(messages: Sequence[Message]) -> int:
    """How many turns of the model a conversation holds."""
    return sum(message.role == "assistant" for message in messages)


def describe_turn(completion: Completion) -> str:
    """The calls of a turn with their places, and the stated confidence, if any: `pdb b shop.py:3, confidence 0.6`."""
    calls = [f"{call.name} {_place(call.arguments)}".rstrip() for call in completion.tool_calls] or ["no call"]
    confidence = parse_decision(completion.text).confidence
    text = ", ".join([*calls, f"confidence {confidence:.1f}"] if confidence else calls)
    return "".join(character if character.isprintable() else "?" for character in text)


def _place(arguments: Mapping[str, JsonValue]) -> str:
    """What a call is about: `path:line`, in the first of several changes or locations, or its first text."""
    listed = next((value for value in arguments.values() if isinstance(value, list) and value), [])
    for part in (arguments, *listed[:1]):
        if isinstance(part, Mapping) and "path" in part:
            line = part.get("line", part.get("start"))
            more = f" and {len(listed) - 1} more" if len(listed) > 1 else ""
            return f"{part['path']}{'' if line is None else f':{line}'}{more}"
    text = next((value for value in arguments.values() if isinstance(value, str) and value.strip()), "")
    return cut_line(text.strip().partition("\n")[0], MOST_CHARACTERS)


def elide(messages: Sequence[Message], before: int) -> list[Message]:
    """The conversation as an agent with a limited context sees it: tool messages at positions below `before` without
    their text.

    The trajectory keeps every message whole. A step records this one number, so that what the agent saw can be
    reconstructed exactly.
    """
    return [_elided(message) if index < before else message for index, message in enumerate(messages)]


def _elided(message: Message) -> Message:
    if message.role != "tool":
        return message
    text = left_out(message.content)
    if text == message.content:
        return message
    return message.model_copy(update={"content": text, "observation": None, "facts": ()})


def elision_point(messages: Sequence[Message], tools: Sequence[ToolSchema], budget: int, current: int) -> int:
    """The position before which to elide, for the coming turn; `current` is the position so far.

    It stays where it is while the conversation fits, so that the prefix stays the same and caches stay warm. Once the
    conversation no longer fits, the position moves on until at most half of the budget is used, or to the latest turns.
    The tools that are offered take up room as well. A token of `budget` counts as four characters.
    """
    fixed = sum(len(tool.model_dump_json(exclude={"decision"})) for tool in tools)
    room = budget * CHARACTERS_A_TOKEN - fixed
    if _size(elide(messages, current)) <= room:
        return current
    turns = [index for index, message in enumerate(messages) if message.role == "assistant"]
    last = turns[-KEEP_TURNS] if len(turns) >= KEEP_TURNS else 0
    for position in [turn for turn in turns if current < turn < last]:
        if _size(elide(messages, position)) <= room // 2:
            return position
    return max(current, last)


def _size(messages: Sequence[Message]) -> int:
    return sum(
        len(message.content) + sum(len(call.model_dump_json()) for call in message.tool_calls) for message in messages
    )


def as_native_chat(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """The conversation in the chat API's own form, control tokens escaped."""
    return [message.as_openai() for message in messages]


def as_template_chat(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """The conversation for a server that renders tools with the model's own chat template.

    What the model wrote goes back as its original text, calls and reasoning included. `transformers serve` drops
    the content of a message that has native calls, and reasoning from every message: the prompt would not be the one
    that the model was trained on. Templates of the Hermes and Qwen kind render both forms to the same tokens.
    Control tokens are escaped.
    """
    return [
        _as_written(message.escaped()) if message.role == "assistant" else message.as_openai() for message in messages
    ]


def _as_written(message: Message) -> dict[str, Any]:
    thought = f"<think>\n{message.reasoning}\n</think>\n\n" if message.reasoning else ""
    text = message.content
    if message.tool_calls:
        text = f"{text}\n{_text_of_calls(message.tool_calls)}".strip("\n")
    return {"role": "assistant", "content": thought + text}


def as_text_messages(messages: Sequence[Message], tools: Sequence[ToolSchema]) -> list[Message]:
    """The same in the form of messages, for any policy; reasoning stays separate from the text."""
    return [Message.model_validate(message) for message in as_text_chat(messages, tools)]


def as_text_chat(messages: Sequence[Message], tools: Sequence[ToolSchema]) -> list[dict[str, str]]:
    """The conversation for a server that knows no tools: schemas in the system message, calls and answers as text.

    This is the layout that the Hermes and Qwen chat templates give native messages. Control tokens are escaped.
    """
    chat: list[dict[str, str]] = []
    for message in (message.escaped() for message in messages):
        role, content = message.role, message.content
        if role == "system" and tools:
            content = f"{content}\n\n{describe_tools(tools)}"
        elif role == "assistant" and message.tool_calls:
            content = f"{content}\n{_text_of_calls(message.tool_calls)}".lstrip("\n")
        elif role == "tool":
            role, content = "user", f"<tool_response>\n{content}\n</tool_response>"
        if chat and chat[-1]["role"] == role == "user":
            chat[-1]["content"] += f"\n{content}"
        else:
            chat.append({"role": role, "content": content})
    return chat


def _text_of_calls(calls: tuple[ToolCall, ...]) -> str:
    """Like `render_text_calls`, but a call that could not be read is kept as the model wrote it."""
    return "\n".join(
        render_text_calls((call,)) if call.raw is None else f"<tool_call>\n{call.raw}\n</tool_call>" for call in calls
    )


def read_turn(written: Completion, *, prefix: str, offered: Collection[str] = ()) -> Completion:
    """The completion of a turn whose text holds its calls, and perhaps a leading `<think>` block, unescaped.

    `prefix` begins the calls' ids; `offered` are the tools that the model may call, as for `split_text_calls`.
    """
    content, thought = split_thought(written.text)
    text, calls = split_text_calls(content, prefix=prefix, offered=offered)
    reasoning = written.reasoning or thought
    return written.model_copy(update={"text": text, "reasoning": reasoning, "tool_calls": calls}).unescaped()


def split_thought(content: str) -> tuple[str, str | None]:
    """The text after a leading `<think>` block, and what is in the block; None without one."""
    head, end, tail = content.partition(THINK_END)
    if not end:
        return content, None
    return tail.lstrip("\n"), head.strip().removeprefix("<think>").strip() or None

"""Chat messages of any agent as a trajectory."""

from __future__ import annotations

import itertools
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from gumshoe.collect.episode.conversation import parse_decision
from gumshoe.errors import DatasetError
from gumshoe.records import (
    Completion,
    Message,
    Observation,
    PolicyInfo,
    Provenance,
    Step,
    StopReason,
    TaskRef,
    ToolCall,
    ToolSchema,
    Trajectory,
    Usage,
)
from gumshoe.storage import describe
from gumshoe.tools.calls.parsing import parse_native, split_text_calls

__all__ = ["Turn", "assemble", "content_text", "foreign_task", "from_messages", "reading", "tool_answer", "tool_kind"]


@dataclass(frozen=True)
class Turn:
    """What an agent said, and the answers to its calls; an agent that was stopped may have calls without an answer."""

    completion: Completion
    observations: tuple[Observation, ...]


def from_messages(
    messages: Sequence[Mapping[str, Any]],
    tools: Sequence[Mapping[str, Any]] = (),
    *,
    name: str,
    source: str = "messages",
) -> Trajectory:
    """The trajectory in chat messages in the OpenAI form; calls may also be Hermes text. Raises DatasetError."""
    turns = _turns(messages, name)
    with reading(f"{name}: the list of tools"):
        schemas = tuple(tool_kind(tool) for tool in tools)
    policy = PolicyInfo(kind=source, agent="unknown")
    return assemble(turns, task=foreign_task(name, source=source), policy=policy, tools=schemas)


def assemble(
    turns: Sequence[Message | Turn],
    *,
    task: TaskRef,
    policy: PolicyInfo,
    tools: tuple[ToolSchema, ...],
) -> Trajectory:
    """A trajectory from elsewhere. Its messages are kept as they are: no step numbers are written into them."""
    messages: list[Message] = []
    steps: list[Step] = []
    for turn in turns:
        if isinstance(turn, Message):
            messages.append(turn)
            continue
        stated = parse_decision(turn.completion.text)
        steps.append(
            Step(
                index=len(steps),
                message_index=len(messages),
                stated=stated.decision,
                rationale=stated.rationale,
                confidence=stated.confidence,
                completion=turn.completion,
                observations=turn.observations,
            )
        )
        messages.append(turn.completion.as_message())
        messages.extend(
            tool_answer(seen, call) for call, seen in zip(turn.completion.tool_calls, turn.observations, strict=False)
        )
    return Trajectory(
        id=f"{task.source}/{task.id}",
        task=task,
        policy=policy,
        tools=tools,
        messages=tuple(messages),
        steps=tuple(steps),
        stop=StopReason.UNKNOWN,
        usage=sum((step.completion.usage for step in steps), Usage()),
        provenance=Provenance(gumshoe="", python="", sandbox="unknown"),
    )


def tool_answer(seen: Observation, call: ToolCall) -> Message:
    """The message that answers a call in a conversation without step numbers."""
    return Message(role="tool", content=seen.text, tool_call_id=call.id, name=call.name)


def foreign_task(name: str, *, source: str) -> TaskRef:
    """A task about which only the name is known."""
    return TaskRef(id=name or "unnamed", hash="", source=source, regime="issue")


def tool_kind(definition: Mapping[str, Any]) -> ToolSchema:
    """A tool in the OpenAI form, with or without its outer layer."""
    inner = definition.get("function", definition)
    return ToolSchema(
        name=inner["name"], description=inner.get("description") or "", parameters=inner.get("parameters") or {}
    )


def _turns(messages: Sequence[Mapping[str, Any]], name: str) -> list[Message | Turn]:
    turns: list[Message | Turn] = []
    answers: dict[int, dict[str, str]] = {}
    for number, message in enumerate(messages):
        with reading(f"{name}: message {number}"):
            role = message["role"]
            if not isinstance(role, str):
                raise TypeError("role must be a string")
            if role == "assistant":
                answers[len(turns)] = {}
                turns.append(Turn(_completion(message, number), ()))
            elif role not in ("tool", "function") or not _take_answer(message, turns, answers):
                text = content_text(message.get("content"))
                turns.append(Message(role="system" if role == "system" else "user", content=text))
    return [_answered(turn, answers[at]) if isinstance(turn, Turn) else turn for at, turn in enumerate(turns)]


def _completion(message: Mapping[str, Any], number: int) -> Completion:
    text, calls = content_text(message.get("content")), _calls(message, number)
    if not calls:
        text, calls = split_text_calls(text, prefix=f"call-{number}")
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    return Completion(text=text, reasoning=reasoning, tool_calls=calls, finish_reason="tool_calls" if calls else "stop")


def _take_answer(
    message: Mapping[str, Any], turns: Sequence[Message | Turn], answers: Mapping[int, dict[str, str]]
) -> bool:
    """Takes the answer to a call: the last one of its id, or, if it names none, the first that waits for an answer.

    Returns whether there is one. Raises ValueError for an id that no call has.
    """
    wanted = message.get("tool_call_id")
    for at in sorted(answers, reverse=True):
        turn = turns[at]
        assert isinstance(turn, Turn)
        waiting = [call.id for call in turn.completion.tool_calls if call.id not in answers[at]]
        found = next((each for each in waiting if wanted in (None, "", each)), None)
        if found is not None:
            answers[at][found] = content_text(message.get("content"))
            return True
    if wanted:
        raise ValueError(f"no call with the id {wanted} waits for an answer")
    return False


def _answered(turn: Turn, answers: Mapping[str, str]) -> Turn:
    """The turn with its answers, up to the first call that has none."""
    answered = itertools.takewhile(lambda call: call.id in answers, turn.completion.tool_calls)
    return Turn(turn.completion, tuple(Observation(tool=call.name, text=answers[call.id]) for call in answered))


def _calls(message: Mapping[str, Any], number: int) -> tuple[ToolCall, ...]:
    """The calls in a message, whose place in the conversation is `number`; `function_call` is an older form for one."""
    calls = message.get("tool_calls") or ()
    if not calls and message.get("function_call"):
        calls = [{"function": message["function_call"]}]
    return tuple(
        parse_native(
            call.get("id") or f"call-{number}-{index}", call["function"]["name"], call["function"].get("arguments")
        )
        for index, call in enumerate(calls)
    )


def content_text(content: Any) -> str:
    """The text of a message; for one in parts, its text parts, a line each. Empty for None."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text", "")) for part in content if part.get("type") == "text")


@contextmanager
def reading(where: str) -> Generator[None]:
    """Turns what a missing value, or one of another type, makes the block raise into a DatasetError about `where`."""
    try:
        yield
    except ValidationError as error:
        raise DatasetError(f"{where} cannot be read: {describe(error)}") from None
    except KeyError as error:
        raise DatasetError(f"{where} cannot be read: it lacks {error}") from None
    except (AttributeError, IndexError, OverflowError, RecursionError, TypeError, ValueError) as error:
        told = " ".join(str(error).split())
        raise DatasetError(f"{where} cannot be read: a value is not of the type that it should be ({told})") from None

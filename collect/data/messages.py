"""Chat messages of any agent as a trajectory, and the files that agents write around them: rows of data sets, those of
SWE-agent (`.traj`) and of mini-swe-agent (`.traj.json`).
"""

from __future__ import annotations

import itertools
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
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
from gumshoe.storage import describe, parse_json
from gumshoe.tools.calls.parsing import parse_native, split_text_calls


@dataclass(frozen=True)
class AnsweredTurn:
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
        schemas = tuple(tool_schema(tool) for tool in tools)
    policy = PolicyInfo(kind=source, agent="unknown")
    return assemble(turns, task=foreign_task(name, source=source), policy=policy, tools=schemas)


def assemble(
    turns: Sequence[Message | AnsweredTurn],
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


def tool_schema(definition: Mapping[str, Any]) -> ToolSchema:
    """A tool in the OpenAI form, with or without its outer layer."""
    inner = definition.get("function", definition)
    return ToolSchema(
        name=inner["name"], description=inner.get("description") or "", parameters=inner.get("parameters") or {}
    )


@dataclass
class _OpenTurn:
    """A turn, and the answers to its calls that have come so far, by the ids of the calls."""

    completion: Completion
    answers: dict[str, str] = field(default_factory=dict[str, str])

    def take(self, call_id: str | None, text: str) -> bool:
        """Takes an answer to the call with this id or, if it names none, to the first that waits for one.

        Returns whether there is such a call.
        """
        waiting = (call.id for call in self.completion.tool_calls if call.id not in self.answers)
        found = next((each for each in waiting if call_id in (None, "", each)), None)
        if found is not None:
            self.answers[found] = text
        return found is not None

    def close(self) -> AnsweredTurn:
        """The turn with its answers, up to the first call that has none."""
        answered = itertools.takewhile(lambda call: call.id in self.answers, self.completion.tool_calls)
        observations = tuple(Observation(tool=call.name, text=self.answers[call.id]) for call in answered)
        return AnsweredTurn(self.completion, observations)


def _turns(messages: Sequence[Mapping[str, Any]], name: str) -> list[Message | AnsweredTurn]:
    turns: list[Message | _OpenTurn] = []
    for number, message in enumerate(messages):
        with reading(f"{name}: message {number}"):
            role = message["role"]
            if not isinstance(role, str):
                raise TypeError("role must be a string")
            if role == "assistant":
                turns.append(_OpenTurn(_completion(message, number)))
            elif role not in ("tool", "function") or not _take_answer(message, turns):
                text = content_text(message.get("content"))
                turns.append(Message(role="system" if role == "system" else "user", content=text))
    return [turn.close() if isinstance(turn, _OpenTurn) else turn for turn in turns]


def _take_answer(message: Mapping[str, Any], turns: Sequence[Message | _OpenTurn]) -> bool:
    """Gives an answer to the last turn that waits for it. Returns whether there is one.

    Raises ValueError for an id that no call has.
    """
    call_id, text = message.get("tool_call_id"), content_text(message.get("content"))
    if any(isinstance(turn, _OpenTurn) and turn.take(call_id, text) for turn in reversed(turns)):
        return True
    if call_id:
        raise ValueError(f"no call with the id {call_id} waits for an answer")
    return False


def _completion(message: Mapping[str, Any], number: int) -> Completion:
    text, calls = content_text(message.get("content")), _calls(message, number)
    if not calls:
        text, calls = split_text_calls(text, prefix=f"call-{number}")
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    return Completion(text=text, reasoning=reasoning, tool_calls=calls, finish_reason="tool_calls" if calls else "stop")


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


# - files of agents


STOPS = {
    "submitted": StopReason.SUBMITTED,
    "exit_cost": StopReason.COST_LIMIT,
    "exit_context": StopReason.CONTEXT_OVERFLOW,
    "exit_format": StopReason.NO_TOOL_CALL,
    "exit_total_execution_time": StopReason.WALL_LIMIT,
    "Submitted": StopReason.SUBMITTED,
    "LimitsExceeded": StopReason.COST_LIMIT,
    "TimeExceeded": StopReason.WALL_LIMIT,
    "ContextWindowExceededError": StopReason.CONTEXT_OVERFLOW,
    "RepeatedFormatError": StopReason.NO_TOOL_CALL,
}
"""What the words of SWE-agent mean, then those of mini-swe-agent."""
BASH = {
    "name": "bash",
    "description": "Execute a bash command",
    "parameters": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
}
"""The only tool of mini-swe-agent."""


def from_row(row: Mapping[str, Any], *, name: str) -> Trajectory:
    """The trajectory in a row with `messages`, and perhaps `tools` and `id`; many sets hold both lists as JSON text.

    Raises DatasetError.
    """
    messages, tools = _decoded(row.get("messages")), _decoded(row.get("tools"))
    if not isinstance(messages, list):
        raise DatasetError("it has no list of messages")
    return from_messages(messages, tools or (), name=str(row.get("id") or name))


def _decoded(value: Any) -> Any:
    with suppress(ValueError):
        return parse_json(value) if isinstance(value, str) else value
    return value


def from_swe_agent(data: Mapping[str, Any], *, name: str) -> Trajectory:
    """The trajectory in a `.traj` file: its history, its submission as the patch, its usage. Raises DatasetError.

    SWE-agent names the file after the instance, so `name` is the task. If the agent wrote its actions as text, they
    stay text: the file does not hold them as calls.
    """
    history, info = data.get("history"), data.get("info") or {}
    if not isinstance(history, list):
        raise DatasetError(f"{name} is not a .traj file of SWE-agent: it has no history")
    messages: list[dict[str, Any]] = []
    for number, message in enumerate(history):
        with reading(f"{name}: message {number}"):
            messages.append(_with_call_id(message))
    found = from_messages(messages, name=name, source="swe-agent")
    with reading(f"{name}: its info"):
        statistics = info.get("model_stats") or {}
        usage = Usage(
            prompt_tokens=int(statistics.get("tokens_sent") or 0),
            completion_tokens=int(statistics.get("tokens_received") or 0),
            cost_usd=statistics.get("instance_cost"),
        )
        policy = PolicyInfo(kind="swe-agent", agent=str(messages[0].get("agent") or "main") if messages else "main")
        return _ended(found, info, info.get("submission") or "", usage, policy)


def _with_call_id(message: Mapping[str, Any]) -> dict[str, Any]:
    """The message with its call's id: SWE-agent names the call that a tool message answers in a list of one."""
    ids = message.get("tool_call_ids")
    return {**message, "tool_call_id": ids[0]} if ids and "tool_call_id" not in message else dict(message)


def from_mini_swe_agent(data: Mapping[str, Any], *, name: str) -> Trajectory:
    """The trajectory in a file of mini-swe-agent 2: its messages, its usage, and its submission if that is a patch.

    Raises DatasetError.
    """
    messages, info = data.get("messages"), data.get("info")
    if not isinstance(messages, list) or not isinstance(info, dict):
        raise DatasetError(f"{name} is not a file of mini-swe-agent: it has no messages and info")
    said = [message for message in messages if not (isinstance(message, dict) and message.get("role") == "exit")]
    found = from_messages(said, [BASH], name=name, source="mini-swe-agent")
    with reading(f"{name}: its info"):
        responses = [(message.get("extra") or {}).get("response") for message in said]
        stated = [response.get("usage") or {} for response in responses if isinstance(response, dict)]
        usage = Usage(
            prompt_tokens=sum(int(one.get("prompt_tokens") or 0) for one in stated),
            completion_tokens=sum(int(one.get("completion_tokens") or 0) for one in stated),
            # 0 is a cost that mini-swe-agent did not know.
            cost_usd=float((info.get("model_stats") or {}).get("instance_cost") or 0.0) or None,
        )
        model = str(info["config"]["model"]["model_name"])
        submission = str(info.get("submission") or "")
        patch = submission if submission.startswith("diff ") else ""
        policy = PolicyInfo(kind="mini-swe-agent", model=model, agent="default")
        return _ended(found, info, patch, usage, policy)


def _ended(found: Trajectory, info: Mapping[str, Any], patch: str, usage: Usage, policy: PolicyInfo) -> Trajectory:
    """The trajectory with what a file's info says of its end.

    With `submitted (exit_cost)`, what was there when the money ran out was submitted.
    """
    words = str(info.get("exit_status")).replace("(", " ").replace(")", " ").split()
    stop = STOPS.get(words[-1], StopReason.UNKNOWN) if words else StopReason.UNKNOWN
    return Trajectory.model_validate({**dict(found), "patch": patch, "stop": stop, "usage": usage, "policy": policy})

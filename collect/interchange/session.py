"""Sessions for the agent trace viewer of the Hugging Face hub: its Session Trace Simple Format (STS-Format).

One JSON Lines file per session: a header, then one message per line. The header may hold more, which the hub ignores:
that is where what the format has no place for is kept, so that a Gumshoe trajectory comes back unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gumshoe.collect.interchange.clock import start_of
from gumshoe.collect.interchange.messages import from_messages
from gumshoe.collect.interchange.reading import reading
from gumshoe.collect.interchange.shell import fill_shell, shell_of
from gumshoe.errors import DatasetError
from gumshoe.records import Message, ToolCall, Trajectory
from gumshoe.storage import parse_json

__all__ = ["from_session", "to_session"]

OURS = "gumshoe"


def to_session(trajectory: Trajectory) -> Iterator[dict[str, Any]]:
    """The lines of a session, ready for JSON."""
    title = f"{trajectory.task.id} ({trajectory.policy.model or trajectory.policy.kind}, {trajectory.stop.value})"
    yield {"type": "session", "harness": OURS, "id": trajectory.id, "name": title, OURS: shell_of(trajectory)}
    steps = {step.message_index: step for step in trajectory.steps}
    start = start_of(trajectory)
    for index, message in enumerate(trajectory.messages):
        step = steps.get(index)
        line: dict[str, Any] = {"role": message.role, "content": message.content}
        if message.reasoning is not None:
            line["reasoningContent"] = message.reasoning
        if message.tool_calls:
            line["toolCalls"] = [_call(call) for call in message.tool_calls]
        if message.tool_call_id is not None:
            line["toolCallId"] = message.tool_call_id
        if step is not None and start is not None:
            line["timestamp"] = round((start.timestamp() + step.started_at) * 1000)
        if step is not None and step.completion.model:
            line["model"] = step.completion.model
        yield {"type": "message", "message": line}


def from_session(lines: Sequence[Mapping[str, Any]], *, name: str) -> Trajectory:
    """The trajectory in a session's lines. Raises DatasetError for anything else."""
    if not lines or lines[0].get("type") != "session":
        raise DatasetError(f"{name} is not a session: its first line must be of type session")
    header = lines[0]
    sent = [line.get("message") for line in lines[1:] if line.get("type") == "message"]
    messages: list[Message] = []
    for number, message in enumerate(one for one in sent if one is not None):
        with reading(f"session {name}: message {number}"):
            messages.append(_message(message))
    if OURS in header:
        with reading(f"session {name}"):
            return fill_shell(header[OURS], messages)
    found = [message.as_openai() for message in messages]
    return from_messages(found, name=str(header.get("id") or name), source="session")


def _call(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "function": {"name": call.name, "arguments": json.dumps(call.arguments)}}


def _message(sent: Mapping[str, Any]) -> Message:
    calls = tuple(
        ToolCall(
            id=call["id"],
            name=call["function"]["name"],
            arguments=parse_json(call["function"].get("arguments") or "{}"),
        )
        for call in sent.get("toolCalls") or ()
    )
    return Message(
        role=sent["role"],
        content=sent["content"],
        reasoning=sent.get("reasoningContent"),
        tool_calls=calls,
        tool_call_id=sent.get("toolCallId"),
    )

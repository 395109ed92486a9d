"""A trajectory without its conversation, for formats that have their own form for messages.

Each text is stored only once, among the messages: removing a secret there before publishing removes it everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gumshoe.records import Message, Trajectory

__all__ = ["fill_shell", "shell_of"]

_SAID = {"text": "content", "reasoning": "reasoning", "tool_calls": "tool_calls"}
"""Maps a field of a completion to the field of its message."""


def shell_of(trajectory: Trajectory) -> dict[str, Any]:
    """Everything but the messages, ready for JSON.

    `steps` lack what their messages say; `messages` holds what chat formats have no place for, by position: the name
    of the tool that answers, and what was wrong with a call that could not be read.
    """
    shell = trajectory.model_dump(mode="json", exclude={"messages"})
    messages = trajectory.messages
    for step, entry in zip(trajectory.steps, shell["steps"], strict=True):
        said = messages[step.message_index] if step.message_index < len(messages) else None
        if said is None or any(getattr(said, there) != getattr(step.completion, here) for here, there in _SAID.items()):
            continue
        for name in _SAID:
            del entry["completion"][name]
        answers = messages[step.message_index + 1 :]
        for seen, answer, kept in zip(step.observations, answers, entry["observations"], strict=False):
            if answer.role == "tool" and answer.content == _shown(step.index, seen.text):
                del kept["text"]
    more = {str(index): found for index, message in enumerate(messages) if (found := _unsayable(message))}
    return {**shell, "messages": more}


def fill_shell(shell: Mapping[str, Any], messages: Sequence[Message]) -> Trajectory:
    """The trajectory of a shell and its messages.

    Raises:
        pydantic.ValidationError, KeyError, IndexError, TypeError, AttributeError: they do not fit together.
    """
    whole = [_with_unsayable(message, shell["messages"].get(str(at), {})) for at, message in enumerate(messages)]
    return Trajectory.model_validate(
        {**shell, "messages": whole, "steps": [_filled(step, whole) for step in shell["steps"]]}
    )


def _filled(step: Mapping[str, Any], messages: Sequence[Message]) -> dict[str, Any]:
    completion = step["completion"]
    if "text" in completion:
        return dict(step)
    place: int = step["message_index"]
    said = messages[place]
    observations = [
        entry if "text" in entry else {**entry, "text": messages[at].content.removeprefix(_shown(step["index"], ""))}
        for at, entry in enumerate(step["observations"], place + 1)
    ]
    spoken = {here: getattr(said, there) for here, there in _SAID.items()}
    return {**step, "completion": {**completion, **spoken}, "observations": observations}


def _shown(step: int, text: str) -> str:
    """A tool's answer as it appears in the conversation (see `tool_message`)."""
    return f"[step {step}] {text}"


def _unsayable(message: Message) -> dict[str, Any]:
    calls = {
        str(at): call.model_dump(mode="json", include={"parse_error", "raw"})
        for at, call in enumerate(message.tool_calls)
        if call.parse_error is not None or call.raw is not None
    }
    return {**({"name": message.name} if message.name is not None else {}), **({"calls": calls} if calls else {})}


def _with_unsayable(message: Message, more: Mapping[str, Any]) -> Message:
    calls = tuple(
        call.model_copy(update=more.get("calls", {}).get(str(at), {})) for at, call in enumerate(message.tool_calls)
    )
    return message.model_copy(update={"tool_calls": calls, "name": more.get("name", message.name)})

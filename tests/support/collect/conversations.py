"""Conversations with a policy, without an environment."""

from __future__ import annotations

from typing import Any

from gumshoe.collect.episode.tool_output import tool_message
from gumshoe.records import Completion, Message, Observation, ToolSchema
from gumshoe.tools.evidence.facts import FactReader

__all__ = ["OPENING", "answer", "converse", "schemas"]

OPENING = [Message(role="system", content="S"), Message(role="user", content="U")]


def schemas(*names: str) -> list[ToolSchema]:
    return [ToolSchema(name=name, description="", parameters={}) for name in names]


def answer(text: str, **data: Any) -> Observation:
    return Observation(tool="", text=text, data=data)


def converse(policy: Any, tools: tuple[str, ...], *answers: Observation | str) -> list[Completion]:
    """The policy's turns, each but the last answered with an observation, or with a text alone."""
    messages, turns, reader = list(OPENING), list[Completion](), FactReader()
    for number in range(len(answers) + 1):
        turns.append(policy.complete(messages, schemas(*tools)))
        if number < len(answers):
            (call,) = turns[-1].tool_calls
            messages.append(turns[-1].as_message())
            given = answers[number]
            observation = given if isinstance(given, Observation) else answer(given)
            observation = observation.model_copy(update={"tool": call.name})
            messages.append(tool_message(number, observation, call, reader.read(number, observation)))
    return turns

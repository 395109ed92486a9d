"""What the tools have answered so far, as data: the observation of each call with the index of its step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gumshoe.records import Message, Observation, Step, ToolCall

__all__ = ["ToolOutput", "outputs_of_steps", "tool_message", "tool_outputs"]


@dataclass(frozen=True)
class ToolOutput:
    """One answer of a tool and the index of its step."""

    step: int
    observation: Observation

    @property
    def tool(self) -> str:
        return self.observation.tool

    @property
    def text(self) -> str:
        return self.observation.text

    @property
    def data(self) -> Mapping[str, Any]:
        return self.observation.data


def tool_message(step: int, observation: Observation, call: ToolCall) -> Message:
    """The message that answers a call. It carries the observation for policies that are programs."""
    return Message(
        role="tool",
        content=f"[step {step}] {observation.text}",
        tool_call_id=call.id,
        name=observation.tool or call.name,
        observation=observation,
    )


def tool_outputs(messages: Sequence[Message]) -> list[ToolOutput]:
    """Every answer in a conversation that is going on, in order; what was elided is left out."""
    found: list[ToolOutput] = []
    step = -1
    for message in messages:
        step += message.role == "assistant"
        if message.observation is not None:
            found.append(ToolOutput(step, message.observation))
    return found


def outputs_of_steps(steps: Iterable[Step]) -> list[ToolOutput]:
    """Every answer in the steps of a trajectory, in order."""
    return [ToolOutput(step.index, observation) for step in steps for observation in step.observations]

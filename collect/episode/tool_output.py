"""What the tools have answered so far, as data: the observation of each call with the index of its step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gumshoe.records import DebugFrame, Fact, LineChange, Message, Observation, Step, ToolCall, WhatIfProbe
from gumshoe.tools.evidence.facts import FactReader, numbered_text
from gumshoe.tools.runs.tracebacks import own_frames

__all__ = [
    "ToolOutput",
    "fact_of_change",
    "last_own_frame",
    "outputs_of_steps",
    "reproduction_of",
    "shown_code",
    "shown_text",
    "tool_message",
    "tool_outputs",
]


AGAIN = "\nThis is the same call as in the last turn, with the same result: make another one."


@dataclass(frozen=True)
class ToolOutput:
    """One answer of a tool, the index of its step, and the facts that have numbers in its text."""

    step: int
    observation: Observation
    facts: tuple[Fact, ...] = ()

    @property
    def tool(self) -> str:
        """The name of the tool."""
        return self.observation.tool

    @property
    def text(self) -> str:
        """What the agent was shown."""
        return self.observation.text

    @property
    def data(self) -> Mapping[str, Any]:
        """The same as structured data; its keys depend on the tool."""
        return self.observation.data


def tool_message(
    step: int, observation: Observation, call: ToolCall, facts: Sequence[Fact] = (), *, again: bool = False
) -> Message:
    """The message that answers a call. It carries the observation for policies that are programs.

    Args:
        step: the index of the step.
        observation: the answer.
        call: what is answered.
        facts: those of the answer, as a `FactReader` numbers them.
        again: the last turn had the same call and the same answer, and the message says so: small models repeat
            themselves.
    """
    text, shown = numbered_text(observation, facts)
    return Message(
        role="tool",
        content=f"[step {step}] {text}{AGAIN if again else ''}",
        tool_call_id=call.id,
        name=observation.tool or call.name,
        observation=observation,
        facts=shown,
    )


def tool_outputs(messages: Sequence[Message]) -> list[ToolOutput]:
    """Every answer in an ongoing conversation, in order; what was elided is left out."""
    found: list[ToolOutput] = []
    step = -1
    for message in messages:
        step += message.role == "assistant"
        if message.observation is not None:
            found.append(ToolOutput(step, message.observation, message.facts))
    return found


def shown_text(messages: Sequence[Message]) -> str:
    """All that was shown, without what the assistant itself has written."""
    return "\n".join(message.content for message in messages if message.role != "assistant")


def outputs_of_steps(steps: Iterable[Step]) -> list[ToolOutput]:
    """Every answer in the steps of a trajectory, in order."""
    reader = FactReader()
    return [
        ToolOutput(step.index, observation, numbered_text(observation, reader.read(step.index, observation))[1])
        for step in steps
        for observation in step.observations
    ]


def fact_of_change(output: ToolOutput, tried: LineChange) -> Fact | None:
    """The fact about a change that was tried in memory; None if the text shows none."""
    probes = ((fact, fact.probe) for fact in output.facts)
    return next(
        (fact for fact, probe in probes if isinstance(probe, WhatIfProbe) and probe.change == tried.change), None
    )


def last_own_frame(frames: Sequence[DebugFrame]) -> DebugFrame | None:
    """The last frame; one of tests only if there is no other."""
    return (own_frames(frames) or frames or [None])[-1]


def shown_code(output: ToolOutput) -> dict[int, str]:
    """The lines of code, by number, that an answer of `view` shows; none for other tools."""
    if output.tool != "view" or "lines" not in output.data:
        return {}
    return dict(enumerate(output.data["lines"], output.data["start"]))


def reproduction_of(steps: Iterable[Step]) -> str:
    """The test that was last written from the issue; empty if there is none."""
    written = [
        str(call.arguments.get("code", ""))
        for step in steps
        for call, observation in zip(step.tool_calls, step.observations, strict=False)
        if observation.tool == call.name == "reproduce" and observation.failure is None
    ]
    return written[-1] if written else ""

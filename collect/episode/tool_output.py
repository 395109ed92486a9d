"""What the tools have answered so far, as data: the code that was seen, what fails, where the debugger stopped.

Programs read an ongoing conversation with it (`tool_outputs`) and the steps of a trajectory (`outputs_of_steps`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gumshoe.records import (
    DebugFrame,
    Fact,
    LineChange,
    Message,
    Observation,
    Probe,
    Step,
    StopProbe,
    ToolCall,
    WhatIfProbe,
)
from gumshoe.tools.eval import SHOW_OUTCOMES, failing_outcomes
from gumshoe.tools.evidence.facts import EXCEPTION, FactReader, numbered_text
from gumshoe.tools.runs.tracebacks import own_frames, telling_line

AGAIN = "\nThis is the same call as in the last turn, with the same result: make another one."
PROGRAM = "the program"
"""Stands for the test if individual tests are not known."""
NEAR = 2
"""As many lines beside the ones that matter still belong to them."""
MAX_QUOTE = 60
"""The most characters of a value that is cited: findings are meant to be read."""


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

    `facts` are those of the answer, as a `FactReader` numbers them. With `again`, the last turn had the same call and
    the same answer, and the message says so: small models repeat themselves.
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


def outputs_of_steps(steps: Iterable[Step]) -> list[ToolOutput]:
    """Every answer in the steps of a trajectory, in order."""
    reader = FactReader()
    return [
        ToolOutput(step.index, observation, numbered_text(observation, reader.read(step.index, observation))[1])
        for step in steps
        for observation in step.observations
    ]


# - what was read


def shown_text(messages: Sequence[Message]) -> str:
    """All that was shown, without what the assistant itself has written."""
    return "\n".join(message.content for message in messages if message.role != "assistant")


def shown_code(output: ToolOutput) -> dict[int, str]:
    """The lines of code, by number, that an answer of `view` shows; none for other tools."""
    if output.tool != "view" or "lines" not in output.data:
        return {}
    return dict(enumerate(output.data["lines"], output.data["start"]))


def seen_code(outputs: Iterable[ToolOutput]) -> dict[str, dict[int, str]]:
    """The lines of code that `view` has shown, by path and number."""
    code: dict[str, dict[int, str]] = {}
    for output in outputs:
        lines = shown_code(output)
        if lines:
            code.setdefault(output.data["path"], {}).update(lines)
    return code


def reproduction_of(steps: Iterable[Step]) -> str:
    """The test that was last written from the issue; empty if there is none."""
    written = [
        str(call.arguments.get("code", ""))
        for step in steps
        for call, observation in zip(step.tool_calls, step.observations, strict=False)
        if observation.tool == call.name == "reproduce" and observation.failure is None
    ]
    return written[-1] if written else ""


# - how the tests fail


@dataclass(frozen=True)
class FailingTest:
    """One failing test that `eval` has shown: the step, the test's id, what was printed about it."""

    step: int
    test: str
    text: str

    @property
    def message(self) -> str:
        """What is wrong, on one line: a doctest's difference, an error or a comparison, else the first line."""
        return telling_line("" if self.test == PROGRAM else self.test, self.text)


def failures(outputs: Iterable[ToolOutput]) -> list[FailingTest]:
    """The failing tests that `eval` has shown, in order."""
    return [failure for output in outputs if output.tool in SHOW_OUTCOMES for failure in _failures_of(output)]


def _failures_of(output: ToolOutput) -> Iterable[FailingTest]:
    data = output.data
    for outcome in failing_outcomes(data):
        yield FailingTest(output.step, outcome.id, outcome.message)
    if not data.get("outcomes") and not data.get("passed", True):
        yield FailingTest(output.step, PROGRAM, data.get("output", ""))


def first_failure(outputs: Sequence[ToolOutput]) -> tuple[FailingTest, Fact] | None:
    """The first failing test and the fact that it fails; None if none fails, or no fact says so."""
    failure = next(iter(failures(outputs)), None)
    if failure is None:
        return None
    shown = (fact for output in outputs if output.step == failure.step for fact in output.facts)
    fact = next((fact for fact in shown if _failing_test(fact.probe) == failure.test), None)
    return None if fact is None else (failure, fact)


def _failing_test(probe: Probe) -> str | None:
    if isinstance(probe, StopProbe) and probe.expression == EXCEPTION:
        return probe.test or PROGRAM
    return None


def last_own_frame(frames: Sequence[DebugFrame]) -> DebugFrame | None:
    """The last frame; one of tests only if there is no other."""
    return (own_frames(frames) or frames or [None])[-1]


# - what experiments and the debugger showed


def stop_at(output: ToolOutput, path: str, numbers: Collection[int]) -> str | None:
    """`path:line` where the debugger stopped at one of the lines, or near it; None if it did not."""
    if output.tool != "pdb" or not numbers:
        return None
    for result in output.data.get("results", ()):
        stop = result.get("stop") or {}
        if stop.get("path") == path and min(numbers) - NEAR <= stop["line"] <= max(numbers) + NEAR:
            return f"{path}:{stop['line']}"
    return None


def telling_values(output: ToolOutput, names: Collection[str] | None = None) -> list[tuple[str, Fact]]:
    """The values of variables that the debugger showed, of all or of these names: name and fact, short ones first.

    `self` and `cls` come last, as they tell the least.
    """
    values = [
        (name, fact)
        for fact in output.facts
        for name in [_expression(fact.probe)]
        if name.isidentifier() and (names is None or name in names) and len(fact.quote) <= MAX_QUOTE
    ]
    return sorted(values, key=lambda value: (value[0] in {"self", "cls"}, len(value[1].quote)))


def _expression(probe: Probe) -> str:
    return probe.expression if isinstance(probe, StopProbe) else ""


def fact_of_change(output: ToolOutput, tried: LineChange) -> Fact | None:
    """The fact about a change that was tried in memory; None if the text shows none."""
    probes = ((fact, fact.probe) for fact in output.facts)
    return next(
        (fact for fact, probe in probes if isinstance(probe, WhatIfProbe) and probe.change == tried.change), None
    )

"""Trajectories made by hand, and conversations with a policy that no environment answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gumshoe.collect.episode.tool_output import tool_message
from gumshoe.records import (
    Completion,
    Message,
    Observation,
    PolicyInfo,
    Provenance,
    Score,
    Step,
    StopReason,
    TaskRef,
    ToolCall,
    ToolSchema,
    Trajectory,
)
from gumshoe.storage import write_jsonl
from gumshoe.tools.evidence.facts import FactReader


def write_run(path: Path, *trajectories: Trajectory) -> Path:
    """A run folder that holds nothing but trajectories."""
    path.mkdir(parents=True)
    write_jsonl(path / "trajectories.jsonl", trajectories)
    return path


def trajectory(name: str = "t#0.1", **changes: Any) -> Trajectory:
    """A trajectory without turns. Anything may be given, its `id` included."""
    data: dict[str, Any] = {
        "id": name,
        "task": TaskRef(id="t", hash="h", source="synth", regime="debug", tags={"project": "p"}),
        "policy": PolicyInfo(kind="scripted", agent="debug"),
        "tools": (),
        "messages": (),
        "steps": (),
        "stop": StopReason.STEP_LIMIT,
        "provenance": Provenance(gumshoe="0", python="3", sandbox="local"),
    }
    return Trajectory(**{**data, **changes})


NASTY: dict[str, Any] = {
    "text": "123",
    "number": 123,
    "float": 1.0,
    "tiny": 1e-7,
    "big": 12345678901234567890,
    "none": None,
    "nested": {"a": [1, "x", None, {"b": []}], "": {}},
    "odd": "\u2028 \x00 é \U0001f600 </tool_call> \\ud800 \r\n\t\"'",
    "list": [],
    "bool": True,
}


def episode(name: str, project: str, *, resolved: bool = True, split: str = "train") -> Trajectory:
    """An episode whose calls have arguments of every kind."""
    call = ToolCall(id="c0", name="odd", arguments=NASTY)
    other = ToolCall(id="c1", name="other", arguments={"only": 1})
    texts = [Observation(tool="odd", text=NASTY["odd"]), Observation(tool="other", text="x")]
    messages = (
        Message(role="system", content="S"),
        Message(role="user", content="U"),
        Message(role="assistant", content="[seek] x", tool_calls=(call, other), reasoning="hm"),
        tool_message(0, texts[0], call),
        tool_message(0, texts[1], other),
        Message(role="assistant", content="hm"),
    )
    step = Step(
        index=0,
        message_index=2,
        completion=Completion(text="[seek] x", tool_calls=(call, other)),
        observations=tuple(texts),
    )
    spoken = Completion(text="hm", token_ids=(7, 8), logprobs=(-0.5, -0.25))
    silent = Step(index=1, message_index=5, completion=spoken)
    return trajectory(
        name,
        task=TaskRef(id=f"t/{name}", hash="h", source="s", regime="debug", tags={"project": project, "split": split}),
        tools=(ToolSchema(name="odd", description="", parameters={"x": [1, {"y": None}]}),),
        messages=messages,
        steps=(step, silent),
        scores=(Score(name="resolved", value=float(resolved)),),
    )


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

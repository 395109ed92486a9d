"""Trajectories made by hand."""

from __future__ import annotations

from typing import Any

from gumshoe.records import (
    Completion,
    Decision,
    Failure,
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

__all__ = ["eventful", "trajectory"]


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


def eventful() -> Trajectory:
    """An episode with an unreadable call, a nudge, a failure, reasoning, tokens and money."""
    unreadable = ToolCall(id="a", name="view", parse_error="no JSON", raw="{")
    good = ToolCall(id="b", name="eval", arguments={"x": [1, None, "é"]})
    usage = Usage(prompt_tokens=5, completion_tokens=2, cached_tokens=3, cost_usd=0.5, duration_s=0.25)
    first = Completion(
        text="[seek 0.5] look",
        reasoning="hm",
        tool_calls=(unreadable, good),
        finish_reason="tool_calls",
        usage=usage,
        model="m-1",
        token_ids=(1, 2),
        logprobs=(-0.5, -0.25),
    )
    second = Completion(text="I think", finish_reason="length", model="m-1")
    observations = (
        Observation(tool="view", text="error", failure=Failure(kind="unreadable_call", message="error")),
        Observation(tool="eval", text="1 failed", data={"counts": {"failed": 1}}, truncated=True, duration_s=0.5),
    )
    return trajectory(
        "t#0.1",
        tools=(ToolSchema(name="view", description="Show.", parameters={"type": "object"}),),
        messages=(
            Message(role="system", content="S"),
            Message(role="user", content="U"),
            first.as_message(),
            Message(role="tool", content="[step 0] error", tool_call_id="a", name="view"),
            Message(role="tool", content="[step 0] 1 failed", tool_call_id="b", name="eval"),
            second.as_message(),
            Message(role="user", content="You called no tool."),
        ),
        steps=(
            Step(
                index=0,
                message_index=2,
                decision=Decision.VERIFY,
                stated=Decision.SEEK,
                rationale="look",
                confidence=0.5,
                completion=first,
                observations=observations,
                reward=0.5,
                started_at=1.0,
                duration_s=2.0,
            ),
            Step(index=1, message_index=5, rationale="I think", completion=second),
        ),
        usage=usage,
        patch="diff\n",
        stop=StopReason.NO_TOOL_CALL,
        errors=("e",),
    )

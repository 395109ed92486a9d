"""Hypothesis strategies for whole, consistent trajectories: those of a Gumshoe episode, and those from elsewhere."""

from __future__ import annotations

from hypothesis import strategies as st

from gumshoe.collect.data.messages import AnsweredTurn, assemble, foreign_task
from gumshoe.collect.episode.tool_output import tool_message
from gumshoe.records import (
    BranchPoint,
    Completion,
    ContextPack,
    Message,
    Observation,
    PolicyInfo,
    Provenance,
    Score,
    Step,
    StopReason,
    ToolCall,
    ToolSchema,
    Trajectory,
    Usage,
)
from support.collect.small_trajectories import trajectory
from support.record_strategies import COUNT, JSON_OBJECTS, SECONDS, TEXT, strategy_of

DATES = ["", "2026-11-22T08:00:00+00:00"]


@st.composite
def completions(draw: st.DrawFn) -> Completion:
    calls = tuple(
        draw(
            st.builds(ToolCall, id=st.just(f"c{number}"), name=TEXT, arguments=JSON_OBJECTS)
            | st.builds(ToolCall, id=st.just(f"c{number}"), name=TEXT, parse_error=TEXT, raw=st.none() | TEXT)
        )
        for number in range(draw(st.integers(0, 2)))
    )
    tokens = draw(st.none() | st.lists(st.tuples(COUNT, st.floats(-100, 0)), max_size=3))
    return Completion(
        text=draw(TEXT),
        reasoning=draw(st.none() | TEXT),
        tool_calls=calls,
        finish_reason=draw(st.sampled_from(["stop", "length", "tool_calls"])),
        usage=draw(strategy_of(Usage)),
        model=draw(TEXT),
        token_ids=None if tokens is None else tuple(token for token, _ in tokens),
        logprobs=None if tokens is None else tuple(logprob for _, logprob in tokens),
    )


@st.composite
def own(draw: st.DrawFn) -> Trajectory:
    """An episode as `gumshoe collect` writes it, with at least one message."""
    messages = [Message(role="system", content=draw(TEXT)), Message(role="user", content=draw(TEXT))]
    steps: list[Step] = []
    for index in range(draw(st.integers(0, 3))):
        completion = draw(completions())
        seen = tuple(draw(strategy_of(Observation)) for _ in completion.tool_calls)
        own = {"index": index, "message_index": len(messages), "completion": completion, "observations": seen}
        steps.append(draw(strategy_of(Step)).model_copy(update=own))
        messages.append(completion.as_message())
        messages += [tool_message(index, one, call) for one, call in zip(seen, completion.tool_calls, strict=True)]
        if draw(st.booleans()):
            messages.append(Message(role="user", content=draw(TEXT)))
    return trajectory(
        draw(st.text(min_size=1, max_size=10)),
        tools=draw(st.lists(st.builds(ToolSchema, name=TEXT, description=TEXT, parameters=JSON_OBJECTS), max_size=2)),
        messages=tuple(messages),
        steps=tuple(steps),
        stop=draw(st.sampled_from(StopReason)),
        patch=draw(TEXT),
        context_pack=draw(st.none() | st.builds(ContextPack, hypothesis=TEXT)),
        scores=tuple(draw(st.lists(st.builds(Score, name=TEXT, value=st.none() | SECONDS), max_size=2))),
        errors=tuple(draw(st.lists(TEXT, max_size=2))),
        tampering=tuple(draw(st.lists(TEXT, max_size=2))),
        branch=draw(st.none() | st.builds(BranchPoint, parent=TEXT, step=st.integers(0, 5))),
        usage=draw(strategy_of(Usage)),
        provenance=draw(strategy_of(Provenance)).model_copy(update={"created_at": draw(st.sampled_from(DATES))}),
    )


@st.composite
def foreign(draw: st.DrawFn) -> Trajectory:
    """An episode that was read from another format."""
    turns: list[Message | AnsweredTurn] = [Message(role="user", content=draw(TEXT))]
    for _ in range(draw(st.integers(0, 3))):
        completion = draw(completions())
        turns.append(
            AnsweredTurn(completion, tuple(Observation(tool=c.name, text=draw(TEXT)) for c in completion.tool_calls))
        )
    policy = PolicyInfo(kind="elsewhere", agent=draw(TEXT))
    return assemble(turns, task=foreign_task(draw(TEXT), source="elsewhere"), policy=policy, tools=())

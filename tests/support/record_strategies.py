"""Records of every kind, made by Hypothesis."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from pydantic import BaseModel

from gumshoe import records
from gumshoe.records import (
    Completion,
    ContextPack,
    Location,
    Message,
    Record,
    Score,
    Step,
    Task,
    ToolCall,
    ToolSchema,
    Trajectory,
    Usage,
    WorkspaceSpec,
)

TEXT = st.text(max_size=40)
NAME = st.text(min_size=1, max_size=20)
COUNT = st.integers(min_value=0, max_value=2**40)
SECONDS = st.floats(min_value=0, max_value=1e9)
JSON_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
JSON_OBJECTS = st.dictionaries(TEXT, JSON_VALUES, max_size=3)


def some(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(strategy, max_size=3).map(tuple)


def usages() -> st.SearchStrategy[Usage]:
    return st.builds(
        Usage,
        prompt_tokens=COUNT,
        completion_tokens=COUNT,
        cached_tokens=COUNT,
        cost_usd=st.none() | SECONDS,
        duration_s=SECONDS,
    )


def tool_calls() -> st.SearchStrategy[ToolCall]:
    return st.builds(ToolCall, id=TEXT, name=TEXT, arguments=JSON_OBJECTS, parse_error=st.none() | TEXT)


def messages() -> st.SearchStrategy[Message]:
    return st.builds(
        Message,
        role=st.sampled_from(["system", "user", "assistant", "tool"]),
        content=TEXT,
        tool_calls=some(tool_calls()),
        tool_call_id=st.none() | TEXT,
        reasoning=st.none() | TEXT,
    )


def observations() -> st.SearchStrategy[records.Observation]:
    return st.builds(
        records.Observation,
        tool=NAME,
        text=TEXT,
        data=JSON_OBJECTS,
        failure=st.none() | st.builds(records.Failure, kind=TEXT, message=TEXT),
        truncated=st.booleans(),
        duration_s=SECONDS,
    )


def completions() -> st.SearchStrategy[Completion]:
    return st.builds(
        Completion,
        text=TEXT,
        tool_calls=some(tool_calls()),
        usage=usages(),
        token_ids=st.none() | some(COUNT),
        logprobs=st.none() | some(st.floats(max_value=0, allow_nan=False, allow_infinity=False)),
    )


def steps() -> st.SearchStrategy[Step]:
    return st.builds(
        Step,
        index=COUNT,
        message_index=COUNT,
        decision=st.none() | st.sampled_from(records.Decision),
        stated=st.none() | st.sampled_from(records.Decision),
        confidence=st.none() | st.floats(0, 1),
        completion=completions(),
        observations=some(observations()),
        reward=st.floats(allow_nan=False, allow_infinity=False),
    )


@st.composite
def locations(draw: st.DrawFn) -> Location:
    start = draw(st.integers(1, 10**6))
    return Location(path=draw(NAME), start=start, end=start + draw(st.integers(0, 100)), why=draw(TEXT))


def frames() -> st.SearchStrategy[records.DebugFrame]:
    return st.builds(
        records.DebugFrame,
        path=TEXT,
        line=st.integers(1, 10**6),
        function=TEXT,
        local_values=st.dictionaries(TEXT, TEXT, max_size=3),
    )


def facts() -> st.SearchStrategy[records.Fact]:
    number, probe = st.integers(1, 10**6), st.just(records.StopProbe(path="a.py", line=1))
    return st.builds(records.Fact, number=number, step=COUNT, shown=TEXT, quote=TEXT, probe=probe)


def packs() -> st.SearchStrategy[ContextPack]:
    return st.builds(
        ContextPack,
        locations=some(locations()),
        findings=some(st.builds(records.Finding, claim=TEXT, step=COUNT, quote=TEXT)),
        failing_frame=st.none() | frames(),
        ruled_out=some(st.builds(records.RuledOut, what=TEXT, why=TEXT)),
        hypothesis=TEXT,
    )


def workspaces() -> st.SearchStrategy[WorkspaceSpec]:
    return st.builds(
        WorkspaceSpec, path=NAME, image=st.none() | NAME, overlay=st.dictionaries(TEXT, st.none() | TEXT, max_size=3)
    )


def tasks() -> st.SearchStrategy[Task]:
    return st.builds(
        Task,
        id=NAME,
        source=NAME,
        problem_statement=TEXT,
        workspace=workspaces(),
        entrypoint=st.lists(NAME, min_size=1, max_size=3).map(tuple),
        setup=some(some(TEXT)),
        tags=st.dictionaries(TEXT, TEXT, max_size=3),
    )


def schemas() -> st.SearchStrategy[ToolSchema]:
    return st.builds(ToolSchema, name=NAME, description=TEXT, parameters=JSON_OBJECTS)


def scores() -> st.SearchStrategy[Score]:
    return st.builds(
        Score, name=NAME, value=st.none() | st.floats(allow_nan=False, allow_infinity=False), explanation=TEXT
    )


def provenances() -> st.SearchStrategy[records.Provenance]:
    return st.builds(records.Provenance, gumshoe=TEXT, python=TEXT, sandbox=TEXT, seed=st.integers(0, 2**31))


def task_refs() -> st.SearchStrategy[records.TaskRef]:
    return st.builds(
        records.TaskRef, id=NAME, hash=TEXT, source=NAME, regime=st.sampled_from(["debug", "issue"]), tags=st.just({})
    )


def trajectories() -> st.SearchStrategy[Trajectory]:
    return st.builds(
        Trajectory,
        id=NAME,
        task=task_refs(),
        policy=st.builds(records.PolicyInfo, kind=NAME, model=TEXT),
        tools=some(schemas()),
        messages=some(messages()),
        steps=some(steps()),
        stop=st.sampled_from(records.StopReason),
        patch=TEXT,
        context_pack=st.none() | packs(),
        scores=some(scores()),
        errors=some(TEXT),
        usage=usages(),
        provenance=provenances(),
    )


def runs() -> st.SearchStrategy[records.ExecResult]:
    return st.builds(records.ExecResult, exit_code=st.none() | st.integers(-64, 255), output=TEXT, duration_s=SECONDS)


STRATEGIES: dict[type[BaseModel], st.SearchStrategy[Any]] = {
    Completion: completions(),
    ContextPack: packs(),
    Location: locations(),
    Message: messages(),
    Score: scores(),
    Step: steps(),
    Task: tasks(),
    ToolCall: tool_calls(),
    ToolSchema: schemas(),
    Trajectory: trajectories(),
    Usage: usages(),
    WorkspaceSpec: workspaces(),
    records.DebugFrame: frames(),
    records.Fact: facts(),
    records.Edit: st.builds(records.Edit, path=TEXT, before=st.none() | TEXT, after=st.none() | TEXT),
    records.ExecResult: runs(),
    records.Limits: st.builds(
        records.Limits,
        steps=st.integers(1, 1000),
        command_timeout_s=st.floats(0.1, 1e6),
        wall_s=st.none() | st.floats(0.1, 1e6),
        tokens=st.none() | st.integers(1, 10**9),
    ),
    records.Observation: observations(),
    records.Provenance: provenances(),
    records.Oracle: st.builds(
        records.Oracle,
        task_id=TEXT,
        gold_patch=TEXT,
        test_patch=TEXT,
        fail_to_pass=some(TEXT),
        pass_to_pass=some(TEXT),
    ),
    records.TaskRef: task_refs(),
    records.TestRun: st.builds(records.TestRun, result=runs()),
}
ALL_RECORDS = [
    value
    for name in records.__all__
    if isinstance(value := getattr(records, name), type) and issubclass(value, Record) and value is not Record
]


def strategy_of(record: type[BaseModel]) -> st.SearchStrategy[Any]:
    """How to make any `record`; those without a strategy of their own follow from the types of their fields."""
    return STRATEGIES[record] if record in STRATEGIES else st.builds(record)

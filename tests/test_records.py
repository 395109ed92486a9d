"""Every record survives the way to JSON and back, cannot be changed, and refuses what it does not know."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

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
    TestOutcome,
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
        tool=TEXT,
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
    records.Edit: st.builds(records.Edit, path=TEXT, before=st.none() | TEXT, after=st.none() | TEXT),
    records.ExecResult: st.builds(
        records.ExecResult, exit_code=st.none() | st.integers(-64, 255), output=TEXT, duration_s=SECONDS
    ),
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
}
ALL_RECORDS = [
    value
    for name in records.__all__
    if isinstance(value := getattr(records, name), type) and issubclass(value, Record) and value is not Record
]


def strategy_of(record: type[BaseModel]) -> st.SearchStrategy[Any]:
    """How to make any `record`; those without a strategy of their own follow from the types of their fields."""
    return STRATEGIES[record] if record in STRATEGIES else st.builds(record)


@pytest.mark.parametrize("record", ALL_RECORDS)
@settings(max_examples=20)
@given(data=st.data())
def test_a_record_survives_the_way_to_json_and_back(record: type[Record], data: st.DataObject):
    made = data.draw(strategy_of(record))
    assert record.model_validate_json(made.model_dump_json()) == made
    assert record.model_validate(json.loads(made.model_dump_json())) == made
    assert record.model_validate_json(made.model_dump_json()).model_dump_json() == made.model_dump_json()


def test_a_duration_makes_no_difference():
    run, slower = (records.ExecResult(exit_code=0, output="x", duration_s=seconds) for seconds in (0.1, 9.0))
    assert run == slower
    assert hash(run) == hash(slower)
    assert run != records.ExecResult(exit_code=1, output="x", duration_s=0.1)
    assert run != records.Observation(tool="x", text="x")


@pytest.mark.parametrize("record", ALL_RECORDS)
@settings(max_examples=20)
@given(data=st.data())
def test_a_record_cannot_be_changed(record: type[Record], data: st.DataObject):
    made = data.draw(strategy_of(record))
    field = next(iter(record.model_fields))
    with pytest.raises(ValidationError, match="frozen"):
        setattr(made, field, getattr(made, field))


@pytest.mark.parametrize("record", ALL_RECORDS)
@settings(max_examples=20)
@given(data=st.data())
def test_a_record_refuses_unknown_fields(record: type[Record], data: st.DataObject):
    content = json.loads(data.draw(strategy_of(record)).model_dump_json())
    with pytest.raises(ValidationError, match="extra_forbidden"):
        record.model_validate({**content, "no_such_field": 1})


@pytest.mark.parametrize("record", [Trajectory, ContextPack])
@settings(max_examples=20)
@given(data=st.data())
def test_what_is_kept_carries_its_schema_version(record: type[BaseModel], data: st.DataObject):
    made = data.draw(strategy_of(record))
    content = json.loads(made.model_dump_json())
    assert content["schema_version"] == records.SCHEMA_VERSION
    with pytest.raises(ValidationError):
        record.model_validate({**content, "schema_version": records.SCHEMA_VERSION + 1})


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_score_is_a_number_or_none(value: float):
    with pytest.raises(ValidationError):
        Score(name="recall", value=value)


@given(first=usages(), second=usages())
def test_usages_add_up(first: Usage, second: Usage):
    total = first + second
    assert total.prompt_tokens == first.prompt_tokens + second.prompt_tokens
    assert total.completion_tokens == first.completion_tokens + second.completion_tokens
    assert total.cached_tokens == first.cached_tokens + second.cached_tokens
    assert (total.cost_usd is None) == (first.cost_usd is None and second.cost_usd is None)


def test_an_unknown_cost_does_not_hide_a_known_one():
    assert (Usage(cost_usd=0.25) + Usage()).cost_usd == 0.25
    assert (Usage() + Usage()).cost_usd is None


@given(task=tasks(), tags=st.dictionaries(TEXT, TEXT, max_size=2))
def test_the_hash_of_a_task_is_that_of_its_content_without_the_tags(task: Task, tags: dict[str, str]):
    assert task.model_copy(update={"tags": tags}).hash == task.hash
    assert task.model_copy(update={"problem_statement": task.problem_statement + "!"}).hash != task.hash
    assert Task.model_validate_json(task.model_dump_json()).hash == task.hash


def test_a_workspace_comes_from_somewhere():
    with pytest.raises(ValidationError, match="path or an image"):
        WorkspaceSpec()


def test_a_location_does_not_end_before_it_starts():
    with pytest.raises(ValidationError, match="end 2 is before start 3"):
        Location(path="a.py", start=3, end=2)
    assert list(Location(path="a.py", start=3, end=5).lines) == [3, 4, 5]


@pytest.mark.parametrize(
    ("outcome", "passed"),
    [("passed", True), ("xfailed", True), ("failed", False), ("error", False), ("skipped", False), ("xpassed", False)],
)
def test_which_outcomes_count_as_passed(outcome: Any, passed: bool):
    assert TestOutcome(id="test_a", outcome=outcome).passed is passed


@settings(max_examples=20)
@given(data=st.data())
def test_resolved_is_unknown_until_it_was_scored(data: st.DataObject):
    trajectory = data.draw(trajectories()).model_copy(update={"scores": ()})
    assert trajectory.resolved is None
    for value, resolved in ((1.0, True), (0.0, False), (None, None)):
        scored = trajectory.model_copy(update={"scores": (Score(name="resolved", value=value),)})
        assert scored.resolved is resolved


@given(message=messages())
def test_a_message_in_the_form_of_the_chat_api(message: Message):
    as_text = message.as_openai()
    as_objects = message.as_openai(arguments_as_text=False)
    assert as_text["role"] == message.role
    assert as_text["content"] == message.content
    assert ("reasoning_content" in as_text) == (message.reasoning is not None)
    for call, text, value in zip(
        message.tool_calls, as_text.get("tool_calls", []), as_objects.get("tool_calls", []), strict=True
    ):
        assert json.loads(text["function"]["arguments"]) == call.arguments == value["function"]["arguments"]


def test_a_tool_message_names_its_call_and_its_tool():
    message = Message(role="tool", content="3", tool_call_id="c1", name="view").as_openai()
    assert message == {"role": "tool", "content": "3", "tool_call_id": "c1", "name": "view"}


def test_a_schema_in_the_form_of_the_chat_api():
    schema = ToolSchema(name="view", description="Show a file.", parameters={"type": "object"})
    assert schema.as_openai() == {
        "type": "function",
        "function": {"name": "view", "description": "Show a file.", "parameters": {"type": "object"}},
    }


@given(completion=completions())
def test_a_completion_becomes_the_assistants_message(completion: Completion):
    message = completion.as_message()
    assert (message.role, message.content, message.tool_calls) == ("assistant", completion.text, completion.tool_calls)


@given(step=steps())
def test_a_step_has_the_calls_of_its_completion(step: Step):
    assert step.tool_calls == step.completion.tool_calls

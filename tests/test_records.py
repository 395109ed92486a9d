"""Every record survives the way to JSON and back, cannot be changed, and refuses what it does not know."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from gumshoe import records
from gumshoe.records import (
    ContextPack,
    Location,
    Message,
    Record,
    Score,
    Step,
    Task,
    TestOutcome,
    ToolSchema,
    Trajectory,
    Usage,
    WorkspaceSpec,
)
from support.record_strategies import ALL_RECORDS, TEXT, strategy_of


@pytest.mark.parametrize("record", ALL_RECORDS)
@settings(max_examples=20)
@given(data=st.data())
def test_a_record_survives_the_way_to_json_and_cannot_be_changed_or_extended(record: type[Record], data: st.DataObject):
    made = data.draw(strategy_of(record))
    text = made.model_dump_json()
    content = json.loads(text)
    assert record.model_validate_json(text) == made
    assert record.model_validate(content) == made
    assert record.model_validate_json(text).model_dump_json() == text
    field = next(iter(record.model_fields))
    with pytest.raises(ValidationError, match="frozen"):
        setattr(made, field, getattr(made, field))
    with pytest.raises(ValidationError, match="extra_forbidden"):
        record.model_validate({**content, "no_such_field": 1})
    if record in (Trajectory, ContextPack):
        assert content["schema_version"] == records.SCHEMA_VERSION
        with pytest.raises(ValidationError):
            record.model_validate({**content, "schema_version": records.SCHEMA_VERSION + 1})


def test_a_duration_makes_no_difference():
    run, slower = (records.ExecResult(exit_code=0, output="x", duration_s=seconds) for seconds in (0.1, 9.0))
    assert run == slower
    assert hash(run) == hash(slower)
    assert run != records.ExecResult(exit_code=1, output="x", duration_s=0.1)
    assert run != records.Observation(tool="x", text="x")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_score_is_a_number_or_none(value: float):
    with pytest.raises(ValidationError):
        Score(name="recall", value=value)


@given(first=strategy_of(Usage), second=strategy_of(Usage))
def test_usages_add_up(first: Usage, second: Usage):
    total = first + second
    assert total.prompt_tokens == first.prompt_tokens + second.prompt_tokens
    assert total.completion_tokens == first.completion_tokens + second.completion_tokens
    assert total.cached_tokens == first.cached_tokens + second.cached_tokens
    assert (total.cost_usd is None) == (first.cost_usd is None and second.cost_usd is None)


def test_an_unknown_cost_does_not_hide_a_known_one():
    assert (Usage(cost_usd=0.25) + Usage()).cost_usd == 0.25
    assert (Usage() + Usage()).cost_usd is None


@given(task=strategy_of(Task), tags=st.dictionaries(TEXT, TEXT, max_size=2))
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
    trajectory = data.draw(strategy_of(Trajectory)).model_copy(update={"scores": ()})
    assert trajectory.resolved is None
    for value, resolved in ((1.0, True), (0.0, False), (None, None)):
        scored = trajectory.model_copy(update={"scores": (Score(name="resolved", value=value),)})
        assert scored.resolved is resolved


@given(message=strategy_of(Message))
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


@given(step=strategy_of(Step))
def test_a_step_has_the_calls_of_its_completion_and_becomes_the_assistants_message(step: Step):
    completion = step.completion
    assert step.tool_calls == completion.tool_calls
    message = completion.as_message()
    assert (message.role, message.content, message.tool_calls) == ("assistant", completion.text, completion.tool_calls)

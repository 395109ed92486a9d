"""Every record survives the way to JSON and back, cannot be changed, and refuses what it does not know."""

from __future__ import annotations

import json
import math

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
    Task,
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


@given(first=strategy_of(Usage), second=strategy_of(Usage))
def test_usages_add_up_and_an_unknown_cost_does_not_hide_a_known_one(first: Usage, second: Usage):
    total = first + second
    for name in ("prompt_tokens", "completion_tokens", "cached_tokens", "duration_s"):
        assert getattr(total, name) == getattr(first, name) + getattr(second, name)
    assert (total.cost_usd is None) == (first.cost_usd is None and second.cost_usd is None)
    assert (first + Usage()).cost_usd == first.cost_usd


@given(task=strategy_of(Task), tags=st.dictionaries(TEXT, TEXT, max_size=2))
def test_the_hash_of_a_task_is_that_of_its_content_without_the_tags(task: Task, tags: dict[str, str]):
    assert task.model_copy(update={"tags": tags}).hash == task.hash
    assert task.model_copy(update={"problem_statement": task.problem_statement + "!"}).hash != task.hash
    assert Task.model_validate_json(task.model_dump_json()).hash == task.hash


def test_what_a_record_refuses():
    with pytest.raises(ValidationError, match="path or an image"):
        WorkspaceSpec()
    with pytest.raises(ValidationError, match="end 2 is before start 3"):
        Location(path="a.py", start=3, end=2)
    for value in (math.nan, math.inf, -math.inf):
        with pytest.raises(ValidationError):
            Score(name="recall", value=value)


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
    assert (as_text.get("tool_call_id"), as_text.get("name")) == (message.tool_call_id, message.name)
    assert ("reasoning_content" in as_text) == (message.reasoning is not None)
    for call, text, value in zip(
        message.tool_calls, as_text.get("tool_calls", []), as_objects.get("tool_calls", []), strict=True
    ):
        assert json.loads(text["function"]["arguments"]) == call.arguments == value["function"]["arguments"]

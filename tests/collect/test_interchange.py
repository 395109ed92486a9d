"""Trajectories of other tools, read: ATIF, plain messages, SWE-agent and mini-swe-agent."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gumshoe.collect.data.atif import all_from_atif, from_atif, to_atif
from gumshoe.collect.data.export.rows import agent_decision_rows, agent_row
from gumshoe.collect.data.messages import from_messages, from_mini_swe_agent, from_swe_agent
from gumshoe.errors import DatasetError
from gumshoe.records import (
    Decision,
    StopReason,
)

FOREIGN: dict[str, Any] = {
    "schema_version": "ATIF-v1.6",
    "session_id": "s-1",
    "agent": {"name": "other", "version": "2", "model_name": "m", "tool_definitions": None},
    "steps": [
        {"step_id": 1, "source": "user", "message": [{"type": "text", "text": "Fix it."}, {"type": "image"}]},
        {
            "step_id": 2,
            "source": "agent",
            "message": "Looking.",
            "tool_calls": [
                {"tool_call_id": "1", "function_name": "bash", "arguments": {"command": "ls"}},
                {"tool_call_id": "2", "function_name": "bash", "arguments": {}},
            ],
            "observation": {"results": [{"content": "a.py"}, {"source_call_id": "2", "content": "b.py"}]},
            "metrics": {"prompt_tokens": 9, "completion_tokens": None},
        },
    ],
}


def test_a_foreign_atif_trajectory_is_read() -> None:
    found = from_atif(FOREIGN)
    assert [message.content for message in found.messages] == ["Fix it.", "Looking.", "a.py", "b.py"]
    assert [seen.text for seen in found.steps[0].observations] == ["a.py", "b.py"]
    assert (found.policy.model, found.policy.agent, found.usage.prompt_tokens) == ("m", "other", 9)
    assert (found.stop, found.resolved, found.task.id) == (StopReason.UNKNOWN, None, "s-1")
    assert from_atif(json.loads(json.dumps(to_atif(found)))) is not None


def test_what_another_model_wrote_earlier_is_shown_and_is_no_step() -> None:
    """Steps that were copied from an earlier trajectory, or that no model was asked for (ATIF 1.5 and 1.7)."""
    steps = [
        {"step_id": 1, "source": "system", "message": "S", "observation": {"results": [{"content": "memory"}]}},
        {**FOREIGN["steps"][1], "is_copied_context": True},
        {"step_id": 3, "source": "agent", "message": "dispatch", "llm_call_count": 0},
        {"step_id": 4, "source": "agent", "message": "done", "observation": {"results": [{"content": "event"}]}},
    ]
    found = from_atif({**FOREIGN, "schema_version": "ATIF-v1.8", "steps": steps})
    assert [step.completion.text for step in found.steps] == ["done"]
    assert [(message.role, message.content) for message in found.messages] == [
        *(("system", "S"), ("user", "memory"), ("assistant", "Looking."), ("tool", "a.py"), ("tool", "b.py")),
        *(("assistant", "dispatch"), ("assistant", "done"), ("user", "event")),
    ]
    assert found.messages[found.steps[0].message_index].content == "done"
    weights = [message.get("weight") for message in agent_row(found)["messages"]]
    assert weights == [None, None, 0, None, None, 0, None, None]
    (decision,) = agent_decision_rows(found)
    assert (decision["step"], decision["completion"]) == (0, [{"role": "assistant", "content": "done"}])
    before = ["S", "memory", "Looking.", "a.py", "b.py", "dispatch"]
    assert [message["content"] for message in decision["prompt"]] == before


def test_embedded_subagents_are_trajectories_of_their_own() -> None:
    embedded = {**FOREIGN, "schema_version": "ATIF-v1.8", "trajectory_id": "sub"}
    found = list(all_from_atif({**FOREIGN, "subagent_trajectories": [embedded]}))
    assert [one.task.id for one in found] == ["s-1", "sub"]


@pytest.mark.parametrize("minor", range(9))
def test_every_version_of_atif_is_read(minor: int) -> None:
    assert len(from_atif({**FOREIGN, "schema_version": f"ATIF-v1.{minor}"}).steps) == 1


def test_plain_messages_are_read() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "view", "arguments": '{"path": "a"}'}}
    found = from_messages(
        [
            {"role": "developer", "content": "S"},
            {"role": "assistant", "content": None, "tool_calls": [call], "reasoning_content": "hm"},
            {"role": "tool", "tool_call_id": "1", "content": [{"type": "text", "text": "x"}]},
            {"role": "assistant", "content": '[seek 0.5] y <tool_call>{"name": "eval", "arguments": {}}</tool_call>'},
        ],
        [{"name": "view"}],
        name="chat",
    )
    assert [step.tool_calls[0].name for step in found.steps] == ["view", "eval"]
    assert found.steps[0].tool_calls[0].arguments == {"path": "a"}
    assert found.steps[0].observations[0].text == "x"
    assert (found.steps[1].stated, found.steps[1].confidence) == (Decision.SEEK, 0.5)
    assert found.messages[0].role == "user"
    assert found.tools[0].name == "view"
    for broken in ([{"content": "x"}], [{"role": "assistant", "tool_calls": [{}]}], [3]):
        with pytest.raises(DatasetError):
            from_messages(broken, name="x")  # pyright: ignore[reportArgumentType]


def test_a_swe_agent_file_is_read() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
    data = {
        "environment": "swe_main",
        "trajectory": [],
        "history": [
            {"role": "system", "content": "S", "agent": "main", "message_type": "system_prompt"},
            {"role": "user", "content": [{"type": "text", "text": "U"}], "agent": "main"},
            {"role": "assistant", "content": "look", "tool_calls": [call], "agent": "main"},
            {"role": "tool", "content": "OBSERVATION:\na.py", "tool_call_ids": ["c1"], "agent": "main"},
        ],
        "info": {
            "submission": "diff --git a/a.py b/a.py\n",
            "exit_status": "submitted",
            "model_stats": {"tokens_sent": 100, "tokens_received": 7, "instance_cost": 0.2},
        },
    }
    found = from_swe_agent(data, name="x")
    assert found.patch.startswith("diff --git")
    assert (found.task.id, found.stop) == ("x", StopReason.SUBMITTED)
    for status, stop in [
        ("submitted (exit_cost)", "cost_limit"),
        ("exit_context", "context_overflow"),
        (None, "unknown"),
    ]:
        assert from_swe_agent({**data, "info": {"exit_status": status}}, name="x").stop == stop
    assert (found.usage.prompt_tokens, found.usage.cost_usd) == (100, 0.2)
    assert found.steps[0].observations[0].text == "OBSERVATION:\na.py"
    assert [message.role for message in found.messages] == ["system", "user", "assistant", "tool"]
    with pytest.raises(DatasetError, match="no history"):
        from_swe_agent({}, name="x")


def test_a_file_of_mini_swe_agent_is_read() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
    said = {"role": "assistant", "content": "I look.", "tool_calls": [call], "extra": {"response": {"usage": USED}}}
    data = {
        "info": {
            "model_stats": {"instance_cost": 0.5, "api_calls": 1},
            "config": {"model": {"model_name": "openai/m"}},
            "exit_status": "Submitted",
            "submission": "diff --git a/x b/x\n",
        },
        "messages": [
            {"role": "system", "content": "You help."},
            {"role": "user", "content": "Mend it."},
            said,
            {"role": "tool", "tool_call_id": "c1", "content": "x.py"},
            {"role": "exit", "content": "done", "extra": {}},
        ],
        "trajectory_format": "mini-swe-agent-1.1",
    }
    found = from_mini_swe_agent(data, name="x")
    assert [message.role for message in found.messages] == ["system", "user", "assistant", "tool"]
    assert found.steps[0].tool_calls[0].arguments == {"command": "ls"}
    assert found.steps[0].observations[0].text == "x.py"
    assert (found.patch, found.stop, found.policy.model) == ("diff --git a/x b/x\n", "submitted", "openai/m")
    assert (found.usage.prompt_tokens, found.usage.completion_tokens, found.usage.cost_usd) == (7, 3, 0.5)
    with pytest.raises(DatasetError, match="not a file of mini-swe-agent"):
        from_mini_swe_agent({"messages": []}, name="x")


USED = {"prompt_tokens": 7, "completion_tokens": 3}


def test_answers_go_to_their_calls_however_they_name_them() -> None:
    def said(*calls: dict[str, Any], **more: Any) -> dict[str, Any]:
        return {"role": "assistant", "content": "", **({"tool_calls": list(calls)} if calls else {}), **more}

    def call(name: str, **more: Any) -> dict[str, Any]:
        return {"function": {"name": name, "arguments": "{}"}, **more}

    found = from_messages(
        [
            said(call("a", id="1"), call("b", id="2")),
            {"role": "tool", "tool_call_id": "2", "content": "B"},
            {"role": "tool", "tool_call_id": "1", "content": "A"},
            said(call("c", id="1"), call("d")),
            *({"role": "tool", "content": text} for text in "CD"),
            said(function_call={"name": "e", "arguments": "{}"}),
            {"role": "function", "name": "e", "content": "E"},
            {"role": "tool", "content": "nobody asked"},
        ],
        name="t",
    )
    assert [[(seen.tool, seen.text) for seen in step.observations] for step in found.steps] == [
        [("a", "A"), ("b", "B")],
        [("c", "C"), ("d", "D")],
        [("e", "E")],
    ]
    assert (found.messages[-1].role, found.messages[-1].content) == ("user", "nobody asked")
    with pytest.raises(DatasetError, match="no call with the id 9"):
        from_messages([said(call("a", id="1")), {"role": "tool", "tool_call_id": "9", "content": "x"}], name="t")

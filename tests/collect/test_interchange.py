from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gumshoe.collect.commands.collect import collect
from gumshoe.collect.config import CollectConfig
from gumshoe.collect.data.interchange import (
    all_from_atif,
    from_atif,
    from_messages,
    from_mini_swe_agent,
    from_swe_agent,
    to_atif,
)
from gumshoe.collect.data.store import read_trajectories
from gumshoe.errors import DatasetError
from gumshoe.records import (
    Decision,
    StopReason,
)
from support.collect.small_trajectories import eventful

Make = Callable[..., CollectConfig]
Run = Callable[..., subprocess.CompletedProcess[str]]


def test_a_trajectory_comes_back_from_atif_as_it_was(config: Make) -> None:
    made = config(2)
    collect(made)
    for one in (eventful(), *read_trajectories(Path(made.out))):
        assert from_atif(json.loads(json.dumps(to_atif(one)))) == one


def test_atif_has_the_fields_of_version_1_8() -> None:
    atif = to_atif(eventful())
    assert list(atif) == [
        *("schema_version", "session_id", "trajectory_id", "agent", "steps", "final_metrics", "extra")
    ]
    assert atif["schema_version"] == "ATIF-v1.8"
    assert set(atif["agent"]) == {"name", "version", "tool_definitions"}
    assert [step["step_id"] for step in atif["steps"]] == [1, 2, 3, 4, 5]
    assert [step["source"] for step in atif["steps"]] == ["system", "user", "agent", "agent", "user"]
    agent = atif["steps"][2]
    assert set(agent) == {
        *("step_id", "source", "model_name", "message", "reasoning_content"),
        *("metrics", "tool_calls", "observation", "extra"),
    }
    assert [call["tool_call_id"] for call in agent["tool_calls"]] == ["a", "b"]
    assert [result["source_call_id"] for result in agent["observation"]["results"]] == ["a", "b"]
    assert agent["observation"]["results"][1]["content"] == "1 failed"
    assert atif["final_metrics"]["total_cost_usd"] == 0.5
    assert set(atif["extra"]) == {"gumshoe"}


def test_timestamps_are_iso_and_in_order(config: Make) -> None:
    import datetime

    made = config(1)
    collect(made)
    (one,) = read_trajectories(Path(made.out))
    stamps = [step["timestamp"] for step in to_atif(one)["steps"] if step["source"] == "agent"]
    assert all(stamp.endswith("Z") for stamp in stamps)
    assert stamps == sorted(stamps, key=datetime.datetime.fromisoformat)


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


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"schema_version": "ATIF-v2.0"},
        {"schema_version": "ATIF-v1.7"},
        {**FOREIGN, "schema_version": "ATIF-v1.9"},
        {**FOREIGN, "steps": [{"step_id": 1}]},
        {**FOREIGN, "steps": [{"source": "nobody", "message": "x"}]},
        {**FOREIGN, "steps": [{"source": "agent", "message": 3}]},
        {**FOREIGN, "extra": {"gumshoe": {}}},
    ],
)
def test_what_is_no_atif_is_told(broken: dict[str, Any]) -> None:
    with pytest.raises(DatasetError):
        from_atif(broken)


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


def test_lines_end_only_where_a_line_ends(tmp_path: Path, run_here: Run) -> None:
    """U+2028 and U+0085 stand unescaped in JSON that others wrote."""
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"messages": [{"role": "user", "content": "a\u2028b\u0085c"}]}\n\n', encoding="utf-8")
    done = run_here("convert", str(rows), "--from", "messages", "--out", str(tmp_path / "run"))
    assert done.returncode == 0, done.stderr
    assert "a\u2028b\u0085c" in (tmp_path / "run" / "trajectories.jsonl").read_text(encoding="utf-8")


def test_wrong_input_is_one_line(tmp_path: Path, run_here: Run) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"messages": []}\n{"id": "x"}\n', encoding="utf-8")
    (tmp_path / "list.json").write_text("[]", encoding="utf-8")
    (tmp_path / "torn.json").write_text("{", encoding="utf-8")
    for number, (words, said) in enumerate(
        [
            ([str(tmp_path / "none"), "--from", "atif"], "cannot be read"),
            ([str(tmp_path / "list.json"), "--from", "swe-agent"], "must hold a JSON object"),
            ([str(tmp_path / "torn.json"), "--from", "atif"], "is not JSON"),
            ([str(rows), "--from", "messages"], "line 2 has no list of messages"),
            ([str(tmp_path), "--to", "atif"], "is not a run folder"),
            ([str(rows)], "one of the arguments"),
        ]
    ):
        done = run_here("convert", *words, "--out", str(tmp_path / f"out{number}"))
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert said in done.stderr
        assert not (tmp_path / f"out{number}").exists()
    full = run_here("convert", str(rows), "--from", "messages", "--out", str(tmp_path))
    assert "already exists" in full.stderr


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

"""Numbers that nobody should write: usage beyond all bounds, and more calls in a turn than an episode has turns."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gumshoe.collect.agent import make_agent
from gumshoe.collect.config import AgentConfig
from gumshoe.collect.policies.scripted import ScriptedPolicy
from gumshoe.collect.rollout import Rollout
from gumshoe.collect.spec import EpisodeSpec
from gumshoe.env import SandboxConfig
from gumshoe.eval.view.facts import row_of_journal, row_of_trajectory
from gumshoe.eval.view.index import Index, IndexEntry
from gumshoe.records import Completion, Limits, StopReason, Task, ToolCall

NUMBERS = [2**63, 2**53, -(2**63), 10**299, 10**400, 1e308, float("inf"), -5, True, "7"]


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: str(number)[:12])
def test_the_viewer_takes_any_usage(number: object, tmp_path: Path) -> None:
    usage = {"prompt_tokens": number, "completion_tokens": number, "cost_usd": number}
    step = {"started_at": number, "duration_s": number, "confidence": number}
    finished = {"id": "a", "usage": usage, "steps": [step], "provenance": {"seed": number}}
    rows = [
        row_of_trajectory({**finished, "scores": [{"name": "resolved", "value": number}]}),
        row_of_journal(
            [{"episode": {"id": "a#0.1"}}, {"completion": {"usage": usage}}, {"completion": {"usage": usage}}]
        ),
    ]
    with Index([tmp_path], tmp_path / "cache") as index:
        index.reached("one", "mark")
        index.add("one", [IndexEntry(str(n), "one", "f", 0, 0, row) for n, row in enumerate(rows)], 1, 0)
        with index.reading() as connection:
            stored = connection.execute("SELECT facts FROM episodes").fetchall()
    assert len(stored) == 2
    json.dumps([json.loads(facts) for (facts,) in stored], allow_nan=False)


@pytest.mark.needs("bubblewrap")
def test_calls_in_parallel_are_one_turn(small_task: Task) -> None:
    views = tuple(ToolCall(id=str(n), name="view", arguments={"path": "app.py"}) for n in range(5))
    turns = [Completion(text="", tool_calls=views), Completion(text="", tool_calls=(ToolCall(id="s", name="submit"),))]
    task = small_task.model_copy(update={"limits": Limits(steps=3)})
    found = Rollout(
        EpisodeSpec(task, None, 0, 1),
        make_agent(AgentConfig(kind="debug")),
        ScriptedPolicy(turns, trusted=False),
        sandbox=SandboxConfig(kind="bubblewrap"),
    ).run()
    assert found.stop is StopReason.SUBMITTED
    assert [len(step.observations) for step in found.steps] == [5, 1]

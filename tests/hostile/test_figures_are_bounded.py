"""Numbers that nobody should write: usage beyond all bounds, and more calls in a turn than an episode has turns."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gumshoe.collect.config import AgentConfig
from gumshoe.collect.episode.agent import make_agent
from gumshoe.collect.episode.spec import EpisodeSpec
from gumshoe.collect.policies.scripted import ScriptedPolicy
from gumshoe.collect.run.play import play_one
from gumshoe.env import SandboxConfig
from gumshoe.eval.view.gold_patches import GoldPatches
from gumshoe.eval.view.library import open_library
from gumshoe.records import Completion, Limits, StopReason, Task, ToolCall

NUMBERS = [2**63, 2**53, -(2**63), 10**299, 10**400, 1e308, float("inf"), -5, True, "7"]


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: str(number)[:12])
def test_the_viewer_takes_any_usage(number: object, tmp_path: Path) -> None:
    """A line with a number that a record refuses is left out, and counted; what is shown is valid JSON."""
    usage = {"prompt_tokens": number, "completion_tokens": number, "cost_usd": number}
    line = {
        "id": "a",
        "task": {"id": "t", "hash": "", "source": "s", "regime": "debug"},
        "policy": {"kind": "replay"},
        "tools": [],
        "messages": [],
        "steps": [],
        "stop": "unknown",
        "usage": usage,
        "provenance": {"gumshoe": "", "python": "", "sandbox": ""},
    }
    (tmp_path / "trajectories.jsonl").write_text(f"{json.dumps(line)}\n")
    (tmp_path / "journal").mkdir()
    entries = [{"episode": {"id": "a#0.1"}}, {"completion": {"text": "", "usage": usage}}]
    (tmp_path / "journal" / "a.jsonl").write_text("".join(f"{json.dumps(entry)}\n" for entry in entries))
    with open_library([tmp_path], GoldPatches()) as library:
        library.catalog.refresh()
        answer = library.rows("", 0)
        (source,) = library.overview()["sources"]
    json.dumps(answer, allow_nan=False)
    assert len(answer["live"]) == 1
    assert len(answer["rows"]) == (source["problem"] is None)


@pytest.mark.needs("bubblewrap")
def test_calls_in_parallel_are_one_turn(small_task: Task) -> None:
    views = tuple(ToolCall(id=str(n), name="view", arguments={"path": "app.py"}) for n in range(5))
    turns = [Completion(text="", tool_calls=views), Completion(text="", tool_calls=(ToolCall(id="s", name="submit"),))]
    task = small_task.model_copy(update={"limits": Limits(steps=3)})
    found = play_one(
        EpisodeSpec(task, None, 0, 1),
        make_agent(AgentConfig(kind="debug")),
        ScriptedPolicy(turns, trusted=False),
        sandbox=SandboxConfig(kind="bubblewrap"),
    )
    assert found.stop is StopReason.SUBMITTED
    assert [len(step.observations) for step in found.steps] == [5, 1]

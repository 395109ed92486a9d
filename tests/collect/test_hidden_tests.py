"""Episodes of the regime `issue`: the tests that decide are nowhere in the agent's world, and decide all the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gumshoe.collect.config import AgentConfig
from gumshoe.collect.episode.agent import make_agent
from gumshoe.collect.episode.spec import EpisodeSpec
from gumshoe.collect.policies.scripted import ScriptedPolicy
from gumshoe.collect.run.play import play_one
from gumshoe.env.diff import make_patch
from gumshoe.records import Completion, Oracle, Task, ToolCall, Trajectory
from support.collect.hidden_tests import BUGGY, CLEAN, hidden_pair
from support.sandboxes.sandbox_backends import LOCAL

HIDDEN = b"from calc import add\n\n\ndef test_add():\n    assert add(2, 2) == 4\n"
FIX: dict[str, Any] = {"path": "calc.py", "start": 2, "code": "    return a + b"}
MINE: dict[str, Any] = {"path": "test_calc.py", "start": 1, "code": "def test_mine():\n    pass"}


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Task, Oracle]:
    return hidden_pair(tmp_path, b"\n", HIDDEN)


def played(pair: tuple[Task, Oracle | None], *rewrites: dict[str, Any]) -> Trajectory:
    calls = [("rewrite", arguments) for arguments in rewrites] + [("submit", {})]
    script = [
        Completion(text="", tool_calls=(ToolCall(id=str(number), name=name, arguments=arguments),))
        for number, (name, arguments) in enumerate(calls)
    ]
    episode = EpisodeSpec(*pair, sample=0, seed=0)
    agent = make_agent(AgentConfig())
    return play_one(episode, agent, ScriptedPolicy(script), sandbox=LOCAL)


def resolved(trajectory: Trajectory) -> float | None:
    (score,) = trajectory.scores
    assert "test_add" not in trajectory.model_dump_json()
    return score.value


def test_the_hidden_tests_decide_and_the_patch_holds_none_of_their_files(pair: tuple[Task, Oracle]) -> None:
    trajectory = played(pair, FIX, MINE)
    assert trajectory.task.regime == "issue"
    assert trajectory.patch == make_patch({"calc.py": (BUGGY, CLEAN)})
    assert resolved(trajectory) == 1.0


def test_tests_of_ones_own_do_not_help(pair: tuple[Task, Oracle]) -> None:
    assert resolved(played(pair, MINE)) == 0.0


def test_without_an_oracle_nothing_is_said(pair: tuple[Task, Oracle]) -> None:
    trajectory = played((pair[0], None), FIX)
    assert trajectory.scores[0].value is None
    assert trajectory.patch


def test_what_cannot_be_graded_is_not_a_failure_of_the_agent(pair: tuple[Task, Oracle]) -> None:
    task, oracle = pair
    drifted = oracle.model_copy(update={"test_patch": make_patch({"test_calc.py": (b"other\n", HIDDEN)})})
    (score,) = played((task, drifted), FIX).scores
    assert score.value is None
    assert score.explanation.startswith("task calc: its test patch")

"""Episodes that a model in training plays turn by turn, in real sandboxes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gumshoe.errors import ConfigError
from gumshoe.eval.live import LiveArena, LiveEpisode, open_arena
from support.sandboxes.sandbox_backends import LOCAL_SETTINGS
from support.shop_tasks import make_taskset

REPORT = {
    "locations": [{"path": "shop.py", "start": 3, "end": 3}],
    "findings": [
        {"fact": 1, "claim": "members pay too little"},
    ],
    "hypothesis": "10 is meant",
}


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> LiveArena:
    tasks = make_taskset(tmp_path_factory.mktemp("live") / "tasks", 2, runner="pytest")
    live: dict[str, Any] = {"tasks": {"source": str(tasks), "shuffle": True}, "limits": {"steps": 4}}
    return open_arena({**live, "sandbox": LOCAL_SETTINGS})


def wants(name: str, arguments: dict[str, Any], text: str = "[seek 0.5] Look.") -> str:
    return f"{text}\n<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


EVAL = wants("eval", {})


def test_tasks_tools_and_opening_are_those_of_the_seeker(arena: LiveArena) -> None:
    assert sorted(arena.tasks) == ["shop/0", "shop/1"]
    episode = arena.episode("shop/0")
    request = episode.next_request()
    assert request is not None
    assert [tool["function"]["name"] for tool in request.tools][-1] == "report"
    assert request.messages == arena.opening("shop/0")
    assert [message["role"] for message in request.messages] == ["system", "user"]
    episode.close()
    with pytest.raises(ConfigError, match="there is no task 'shop/9'"):
        arena.opening("shop/9")


def test_an_episode_is_scored(arena: LiveArena) -> None:
    episode = arena.episode("shop/0")
    assert play_turns(episode, EVAL)[-1]["content"].startswith("[step 0] 1 failed, 1 passed")
    assert play_turns(episode, wants("veiw", {}))[-1]["content"].startswith("[step 1] error: no tool 'veiw'")
    assert episode.scores() == {"line_f1": 0.0, "grounding": 0.0, "cost": 0.0, "format": 0.25}
    assert play_turns(episode, wants("report", REPORT)) == []
    assert episode.scores() == {
        "line_f1": 1.0,
        "grounding": 1.0,
        "cost": pytest.approx(1 / 4),
        "format": pytest.approx(2 / 3),
    }
    episode.close()


def play_turns(episode: LiveEpisode, *turns: str) -> list[dict[str, Any]]:
    """Plays the turns; returns the messages of the request that follows, none where the episode is over."""
    request = episode.next_request()
    for turn in turns:
        assert request is not None
        episode.accept(turn)
        request = episode.next_request()
    return [] if request is None else request.messages


def test_tasks_without_an_answer_are_refused(tmp_path: Path) -> None:
    tasks = make_taskset(tmp_path / "tasks", 1, runner="pytest")
    oracle = json.loads((tasks / "oracles.jsonl").read_text())
    (tasks / "oracles.jsonl").write_text(json.dumps({**oracle, "gold_patch": ""}) + "\n")
    with pytest.raises(ConfigError, match="no task that comes with its answer"):
        open_arena({"tasks": {"source": str(tasks)}})
    with pytest.raises(ConfigError, match="live: unknown key 'task'"):
        open_arena({"task": {}})

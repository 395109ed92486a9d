"""Episodes that a model in training plays turn by turn, in real sandboxes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from held_out import make_taskset

from gumshoe.errors import ConfigError
from gumshoe.eval.live import SeekerArena, open_arena

REPORT = {
    "locations": [{"path": "shop.py", "start": 3, "end": 3}],
    "findings": [
        {"claim": "too much is taken off", "step": 0, "quote": "total = total - 11"},
        {"claim": "made up", "step": 0, "quote": "no such line"},
    ],
    "hypothesis": "10 is meant",
}


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> SeekerArena:
    tasks = make_taskset(tmp_path_factory.mktemp("live") / "tasks", 2)
    live: dict[str, Any] = {"tasks": {"source": str(tasks), "shuffle": True}, "limits": {"steps": 4}}
    return open_arena({**live, "sandbox": {"kind": "local", "unsafe": True}})


def test_tasks_tools_and_opening_are_those_of_the_seeker(arena: SeekerArena) -> None:
    assert sorted(arena.tasks) == ["shop/0", "shop/1"]
    assert [tool["function"]["name"] for tool in arena.tools][-1] == "report"
    assert [message["role"] for message in arena.opening("shop/0")] == ["system", "user"]
    with pytest.raises(ConfigError, match="there is no task 'shop/9'"):
        arena.opening("shop/9")


def test_an_episode_by_calls_is_scored(arena: SeekerArena) -> None:
    episode = arena.episode()
    assert episode.reset("shop/0") == arena.opening("shop/0")
    assert "total = total - 11" in episode.call("view", {"path": "shop.py"})
    assert episode.call("veiw", {}).startswith("[step 1] error: no tool 'veiw'")
    assert episode.scores() == {"line_f1": 0.0, "grounding": 0.0, "cost": 0.0, "format": 0.25}
    episode.call("report", REPORT)
    assert episode.over
    assert episode.scores() == {
        "line_f1": 1.0,
        "grounding": 0.5,
        "cost": pytest.approx(1 / 4),
        "format": pytest.approx(2 / 3),
    }
    assert episode.call("view", {"path": "shop.py"}).endswith("not run: the episode was over")
    episode.close()


def test_calls_of_one_turn_are_one_step(arena: SeekerArena) -> None:
    episode = arena.episode()
    episode.reset("shop/1")
    assert episode.call("view", {"path": "shop.py"}).startswith("[step 0]")
    assert episode.call("view", {"path": "shop.py"}, new_turn=False).startswith("[step 0]")
    assert episode.call("grep", {"pattern": "price"}).startswith("[step 1]")
    episode.close()


def test_an_episode_by_text_goes_on_until_the_limit(arena: SeekerArena) -> None:
    episode = arena.episode()
    episode.reset("shop/0")
    call = json.dumps({"name": "view", "arguments": {"path": "shop.py"}})
    for step in range(4):
        assert not episode.over
        said, told = episode.answer(f"[seek 0.5] Again.\n<tool_call>\n{call}\n</tool_call>")
        assert said["content"].startswith("[seek 0.5]")
        assert told["content"].startswith(f"[step {step}] shop.py")
    assert episode.over
    assert episode.scores()["format"] == 0.5


def test_a_turn_without_a_call_ends_the_episode(arena: SeekerArena) -> None:
    episode = arena.episode()
    episode.reset("shop/0")
    assert episode.answer("I give up.") == [{"role": "assistant", "content": "I give up."}]
    assert episode.over
    assert episode.scores()["format"] == 0.0


def test_tasks_without_an_answer_are_refused(tmp_path: Path) -> None:
    tasks = make_taskset(tmp_path / "tasks", 1)
    oracle = json.loads((tasks / "oracles.jsonl").read_text())
    (tasks / "oracles.jsonl").write_text(json.dumps({**oracle, "gold_patch": ""}) + "\n")
    with pytest.raises(ConfigError, match="no task that comes with its answer"):
        open_arena({"tasks": {"source": str(tasks)}})
    with pytest.raises(ConfigError, match="live: unknown key 'task'"):
        open_arena({"task": {}})

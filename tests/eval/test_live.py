"""Episodes that a model in training plays turn by turn, in real sandboxes: the same as those of an evaluation."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gumshoe.cli import main
from gumshoe.collect.data.store import read_trajectories
from gumshoe.errors import ConfigError
from gumshoe.eval.live import LiveEpisodes, episode_scores, open_episodes
from gumshoe.records import StopReason, Trajectory
from gumshoe.train.episodes import GeneratedTurn, Request, play
from support.eval.explorers import serving
from support.eval.made import write_eval_config
from support.sandboxes.sandbox_backends import LOCAL_SETTINGS
from support.shop_tasks import make_taskset

WEIGHTS = {"line_f1": 1.0, "grounding": 0.3, "format": 0.3, "cost": 0.1}
LIMITS = {"steps": 5, "calls": 6}


def turn(*calls: tuple[str, dict[str, Any]], text: str = "[seek 0.5] Look.") -> str:
    blocks = (json.dumps({"name": name, "arguments": arguments}) for name, arguments in calls)
    return "\n".join([text, *(f"<tool_call>\n{block}\n</tool_call>" for block in blocks)])


VIEW = ("view", {"path": "shop.py"})
EVAL: tuple[str, dict[str, Any]] = ("eval", {})
FOUND = {"locations": [{"path": "shop.py", "start": 3, "end": 3}], "findings": [{"fact": 1, "claim": "too much"}]}
REPORT = ("report", {**FOUND, "hypothesis": "10 is meant"})
BROKEN = "Look.\n<tool_call>\n{broken\n</tool_call>"
POLICIES = {
    StopReason.REPORTED: ["I wonder.", turn(VIEW, EVAL), turn(("veiw", {})), turn(REPORT)],
    StopReason.NO_TOOL_CALL: ["I wonder.", "Still.", "Still."],
    StopReason.STEP_LIMIT: [turn(VIEW), turn(EVAL), BROKEN, turn(VIEW), turn(VIEW)],
    StopReason.CALL_LIMIT: [turn(VIEW, VIEW), turn(VIEW, VIEW), turn(VIEW, VIEW, VIEW)],
}
"""The turns of policies, by how their episodes end."""
TASKS = {stop: f"shop/{number}" for number, stop in enumerate(POLICIES)}


class Script:
    """A model that writes the turns of the policy that the task's number stands for; keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: dict[StopReason, list[dict[str, Any]]] = {stop: [] for stop in POLICIES}

    def answer(self, request: Mapping[str, Any]) -> tuple[str, list[Any]]:
        statement = request["messages"][1]["content"]
        stop = next(stop for number, stop in enumerate(POLICIES) if f"get {11 + number} off" in statement)
        self.asked[stop].append(dict(request))
        return POLICIES[stop][len(self.asked[stop]) - 1], []


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_taskset(tmp_path_factory.mktemp("tasks") / "shop", len(POLICIES), runner="pytest")


@pytest.fixture(scope="module")
def source(tasks: Path) -> LiveEpisodes:
    live: dict[str, Any] = {"tasks": {"source": str(tasks), "shuffle": True}, "limits": LIMITS}
    return open_episodes({**live, "sandbox": LOCAL_SETTINGS})


Evaluated = tuple[dict[StopReason, Trajectory], Script, dict[str, dict[str, Any]]]


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory, tasks: Path) -> Evaluated:
    """Every policy, evaluated on its task: the trajectories, what the server was asked, and the scores by task."""
    folder, script = tmp_path_factory.mktemp("evaluation"), Script()
    with serving(script) as url:  # pyright: ignore[reportArgumentType]
        policy = {"kind": "openai", "model": "m", "base_url": url, "syntax": "template"}
        arms = [{"name": "model", "policy": policy}]
        config = write_eval_config(folder, tasks={"source": str(tasks)}, arms=arms, limits=LIMITS, resamples=100)
        assert main(["eval", str(config)]) == 0
    rows = [json.loads(line) for line in (folder / "out" / "results.jsonl").read_text().splitlines()]
    played = {one.stop: one for one in read_trajectories(folder / "out" / "arms" / "model")}
    return played, script, {row["task_id"]: row["scores"] for row in rows}


@pytest.mark.parametrize("stop", POLICIES)
def test_training_and_evaluation_play_the_same_episode(
    stop: StopReason, evaluated: Evaluated, source: LiveEpisodes
) -> None:
    trajectory, asked, scores = evaluated[0][stop], evaluated[1].asked[stop], evaluated[2][TASKS[stop]]
    requests: list[Request] = []

    def write(request: Request) -> GeneratedTurn:
        requests.append(request)
        return GeneratedTurn(POLICIES[stop][len(requests) - 1])

    live = source.episode(TASKS[stop])
    reward = play(live, write, WEIGHTS)

    pack = trajectory.context_pack
    assert [finding.step for finding in pack.findings] == [1] if pack is not None else stop is not StopReason.REPORTED
    assert live.episode.stop is stop
    assert trajectory.task.id == TASKS[stop]
    assert len(requests) == len(asked) == len(POLICIES[stop])
    assert [request.messages for request in requests] == [request["messages"] for request in asked]
    assert [request.tools for request in requests] == [request["tools"] for request in asked]
    said = [message.model_dump() for message in live.episode.messages]
    assert said == [message.model_dump() for message in trajectory.messages]
    for mine, theirs in zip(live.episode.steps, trajectory.steps, strict=True):
        assert (mine.decision, mine.reward, mine.elided) == (theirs.decision, theirs.reward, theirs.elided)
        assert [one.failure for one in mine.observations] == [one.failure for one in theirs.observations]

    oracle = live.episode.spec.oracle
    assert oracle is not None
    earned = episode_scores(trajectory.steps, trajectory.context_pack, oracle, LIMITS["steps"])
    assert reward == pytest.approx(sum(WEIGHTS[score] * (earned[score] or 0.0) for score in WEIGHTS))
    assert earned["line_f1"] == (scores["line_f1"] or 0.0)
    assert earned["grounding"] == (scores["grounding"] or 0.0)
    assert earned["format"] == scores["valid_calls"] / (1 if trajectory.context_pack else 2)


def test_an_episode_opens_as_a_seekers_and_is_scored(source: LiveEpisodes) -> None:
    assert sorted(source.tasks) == sorted(TASKS.values())
    episode = source.episode("shop/0")
    request = episode.next_request()
    assert request is not None
    assert [tool["function"]["name"] for tool in request.tools][-1] == "report"
    assert request.messages == source.opening("shop/0")
    assert [message["role"] for message in request.messages] == ["system", "user"]
    for written, answered in (
        (turn(EVAL), "[step 0] 1 failed, 1 passed"),
        (turn(("veiw", {})), "[step 1] error: no tool 'veiw'"),
    ):
        episode.accept(written)
        request = episode.next_request()
        assert request is not None
        assert request.messages[-1]["content"].startswith(answered)
    assert episode.scores() == {"line_f1": 0.0, "grounding": 0.0, "cost": 0.0, "format": 0.25}
    episode.accept(turn(REPORT))
    assert episode.next_request() is None
    earned = {"line_f1": 1.0, "grounding": 1.0, "cost": pytest.approx(2 / 5), "format": pytest.approx(2 / 3)}
    assert episode.scores() == earned
    episode.close()
    with pytest.raises(ConfigError, match="there is no task 'shop/9'"):
        source.opening("shop/9")


def test_tasks_without_an_answer_are_refused(tmp_path: Path) -> None:
    tasks = make_taskset(tmp_path / "tasks", 1, runner="pytest")
    oracle = json.loads((tasks / "oracles.jsonl").read_text())
    (tasks / "oracles.jsonl").write_text(json.dumps({**oracle, "gold_patch": ""}) + "\n")
    with pytest.raises(ConfigError, match="no task that comes with its answer"):
        open_episodes({"tasks": {"source": str(tasks)}})
    with pytest.raises(ConfigError, match="live: unknown key 'task'"):
        open_episodes({"task": {}})

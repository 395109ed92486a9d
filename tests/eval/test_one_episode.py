"""One policy, played by an evaluation over the wire and by training in this process, meets the same episode."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from gumshoe.cli import main
from gumshoe.collect.data.store import read_trajectories
from gumshoe.eval.live import LiveEpisode, episode_scores, open_arena
from gumshoe.records import StopReason, Trajectory
from gumshoe.train.episodes import GeneratedTurn, Request, play
from support.eval.explorers import serving
from support.sandboxes.sandbox_backends import LOCAL_SETTINGS
from support.shop_tasks import make_taskset

WEIGHTS = {"line_f1": 1.0, "grounding": 0.3, "format": 0.3, "cost": 0.1}
LIMITS = {"steps": 5, "calls": 6}


def turn(*calls: tuple[str, dict[str, Any]], text: str = "[seek 0.5] Look.") -> str:
    blocks = (json.dumps({"name": name, "arguments": arguments}) for name, arguments in calls)
    return "\n".join([text, *(f"<tool_call>\n{block}\n</tool_call>" for block in blocks)])


VIEW = ("view", {"path": "shop.py"})
EVAL: tuple[str, dict[str, Any]] = ("eval", {})
REPORT = (
    "report",
    {
        "locations": [{"path": "shop.py", "start": 3, "end": 3}],
        "findings": [{"fact": 1, "claim": "too much"}],
        "hypothesis": "10 is meant",
    },
)
POLICIES = {
    "nudged, then reports": ["I wonder.", turn(VIEW, EVAL), turn(("veiw", {})), turn(REPORT)],
    "never calls": ["I wonder.", "Still.", "Still."],
    "cannot be read": [turn(EVAL), "Look.\n<tool_call>\n{broken\n</tool_call>", turn(REPORT)],
    "runs out of turns": [turn(VIEW)] * 5,
    "runs out of calls": [turn(VIEW, VIEW), turn(VIEW, VIEW), turn(VIEW, VIEW, VIEW)],
}
STOPS = dict(
    zip(
        POLICIES,
        (
            StopReason.REPORTED,
            StopReason.NO_TOOL_CALL,
            StopReason.REPORTED,
            StopReason.STEP_LIMIT,
            StopReason.CALL_LIMIT,
        ),
        strict=True,
    )
)


NUMBERS = {name: number for number, name in enumerate(POLICIES)}


class Script:
    """A model that writes the turns of the policy that the task's number stands for; keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: dict[str, list[dict[str, Any]]] = {name: [] for name in POLICIES}

    def answer(self, request: Mapping[str, Any]) -> tuple[str, list[Any]]:
        statement = request["messages"][1]["content"]
        name = next(name for name, number in NUMBERS.items() if f"get {11 + number} off" in statement)
        self.asked[name].append(dict(request))
        return POLICIES[name][len(self.asked[name]) - 1], []


@dataclass(frozen=True)
class Evaluated:
    """One episode of the evaluation: its trajectory, what the server was asked, the scores."""

    trajectory: Trajectory
    asked: list[dict[str, Any]]
    scores: dict[str, Any]


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_taskset(tmp_path_factory.mktemp("tasks") / "shop", len(POLICIES), runner="pytest")


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory, tasks: Path) -> dict[str, Evaluated]:
    """Every policy, evaluated on its task."""
    folder, script = tmp_path_factory.mktemp("evaluation"), Script()
    with serving(script) as url:  # pyright: ignore[reportArgumentType]
        policy = {"kind": "openai", "model": "m", "base_url": url, "syntax": "template"}
        config = {
            "out": str(folder / "out"),
            "tasks": {"source": str(tasks)},
            "arms": [{"name": "model", "policy": policy}],
            "sandbox": LOCAL_SETTINGS,
            "limits": LIMITS,
            "resamples": 100,
        }
        (folder / "eval.yaml").write_text(yaml.safe_dump(config))
        assert main(["eval", str(folder / "eval.yaml")]) == 0
    rows = [json.loads(line) for line in (folder / "out" / "results.jsonl").read_text().splitlines()]
    scores = {row["task_id"]: row["scores"] for row in rows}
    played = {one.task.id: one for one in read_trajectories(folder / "out" / "arms" / "model")}
    return {
        name: Evaluated(played[f"shop/{number}"], script.asked[name], scores[f"shop/{number}"])
        for name, number in NUMBERS.items()
    }


def live_episode(tasks: Path, name: str) -> LiveEpisode:
    settings: dict[str, Any] = {"tasks": {"source": str(tasks)}, "limits": LIMITS}
    return open_arena({**settings, "sandbox": LOCAL_SETTINGS}).episode(f"shop/{NUMBERS[name]}")


@pytest.mark.parametrize("name", POLICIES)
def test_training_and_evaluation_play_the_same_episode(name: str, evaluated: dict[str, Evaluated], tasks: Path) -> None:
    turns = POLICIES[name]
    trajectory, asked, scores = evaluated[name].trajectory, evaluated[name].asked, evaluated[name].scores
    requests: list[Request] = []

    def write(request: Request) -> GeneratedTurn:
        requests.append(request)
        return GeneratedTurn(turns[len(requests) - 1])

    live = live_episode(tasks, name)
    reward = play(live, write, WEIGHTS)

    assert trajectory.stop is live.episode.stop is STOPS[name]
    assert len(requests) == len(asked) == len(turns)
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


def test_findings_name_the_turn_that_showed_the_fact(evaluated: dict[str, Evaluated]) -> None:
    pack = evaluated["nudged, then reports"].trajectory.context_pack
    assert pack is not None
    assert [finding.step for finding in pack.findings] == [1]

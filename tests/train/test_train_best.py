"""Which checkpoint is kept, when training stops early, and what that takes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from gumshoe.errors import ConfigError
from gumshoe.train.live import GeneratedTurn, LiveSection, Request, open_arena, play, reward
from gumshoe.train.sft import train
from support.train.micro_config import make_config
from support.train.training_rows import TOOLS, conversation

HERE = f"{__name__}:make_arena"


@dataclass
class FakeRequest:
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]] = field(default_factory=lambda: TOOLS)


class Scripted:
    """Episodes that a script scores: what an episode is worth falls from one to the next."""

    def __init__(self, worth: list[float]) -> None:
        self.worth = worth
        self.written: list[str] = []
        self.over = False

    def begin(self) -> Scripted:
        self.over = False
        return self

    def next_request(self) -> FakeRequest | None:
        return None if self.over else FakeRequest(conversation(0)[:2])

    def accept(self, text: str, *, cut_off: bool = False) -> None:
        self.written.append(text)
        self.over = True

    def scores(self) -> dict[str, float]:
        return {"line_f1": self.worth.pop(0), "format": 1.0}

    def close(self) -> None:
        self.over = True


class ScriptedArena:
    tasks: Sequence[str] = ("0",)
    scores: Sequence[str] = ("line_f1", "format")

    def __init__(self, live: Mapping[str, Any]) -> None:
        self._episode = Scripted(list(live["worth"]))

    def opening(self, task: str) -> list[dict[str, Any]]:
        return conversation(int(task))[:2]

    def episode(self, task: str) -> Scripted:
        assert task in self.tasks
        return self._episode.begin()


def make_arena(live: Mapping[str, Any]) -> ScriptedArena:
    return ScriptedArena(live)


def section(worth: list[float], **changes: Any) -> LiveSection:
    weights = {"line_f1": 1.0}
    return LiveSection(environment=HERE, live={"worth": list(worth)}, weights=weights, max_tokens=4, **changes)


def measured(log: Path, key: str) -> list[float]:
    return [entry[key] for line in log.read_text().splitlines() if key in (entry := json.loads(line))]


def test_the_checkpoint_of_the_best_live_episodes_is_kept_and_training_stops(dataset: Path, tmp_path: Path) -> None:
    worth = [0.2, 0.7, 0.3, 0.3, 0.9]
    episodes = section(worth)
    config = make_config(
        dataset,
        tmp_path / "run",
        max_steps=5,
        eval_split="test",
        eval_every=1,
        save_every=1,
        best="seeker",
        patience=2,
        keep=3,
        episodes=episodes.model_dump(),
    )
    result = train(config, arena=open_arena(episodes))
    assert measured(result.log, "eval_seeker_score") == [0.2, 0.7, 0.3, 0.3]
    outcome = result.outcome
    assert outcome is not None
    assert (outcome.best_step, outcome.seeker_score, outcome.steps) == (2, 0.7, 4)
    assert outcome.eval_accuracy is not None
    card = (result.model / "README.md").read_text()
    assert "| step kept, by seeker | 2 |" in card
    assert "| mean reward of live episodes | 0.7000 |" in card
    kept = (Path(config.out) / "checkpoints" / "checkpoint-2" / "model.safetensors").read_bytes()
    assert (result.model / "model.safetensors").read_bytes() == kept


def test_the_checkpoint_of_the_lowest_held_out_loss_is_kept(dataset: Path, tmp_path: Path) -> None:
    every = {"eval_split": "test", "eval_every": 1, "save_every": 1}
    result = train(make_config(dataset, tmp_path / "run", max_steps=3, best="eval_loss", **every))
    losses = measured(result.log, "eval_loss")
    assert result.outcome is not None
    assert result.outcome.eval_loss == min(losses)
    assert result.outcome.best_step == 1 + losses.index(min(losses))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"patience": 2}, "patience needs best"),
        ({"best": "eval_loss"}, "needs an eval_split"),
        (
            {"best": "eval_loss", "eval_split": "test", "eval_every": 2},
            "set save_every and eval_every to the same value",
        ),
        ({"best": "seeker", "eval_split": "test"}, "a section episodes"),
    ],
)
def test_what_does_not_go_together_is_said(dataset: Path, tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make_config(dataset, tmp_path, **changes)


def test_best_by_episodes_needs_them(dataset: Path, tmp_path: Path) -> None:
    config = make_config(
        dataset, tmp_path / "run", eval_split="test", best="seeker", episodes=section([1.0]).model_dump()
    )
    with pytest.raises(ConfigError, match="needs live episodes"):
        train(config)


@pytest.mark.parametrize("name", ["nonsense", "no.such:thing", "json:nothing"])
def test_an_environment_that_is_not_there_is_named(name: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(repr(name))):
        open_arena(section([1.0]).model_copy(update={"environment": name}))


def test_an_unknown_score_is_named() -> None:
    with pytest.raises(ConfigError, match="there is no score 'luck'; the scores are cost, line_f1"):
        reward({"line_f1": 1.0, "cost": 0.5}, {"luck": 1.0})
    assert reward({"line_f1": 1.0, "cost": 0.5}, {"line_f1": 2.0, "cost": 1.0}) == 2.5


def test_an_episode_is_closed_also_when_the_writer_fails() -> None:
    episode = Scripted([1.0])

    def fail(request: Request) -> GeneratedTurn:
        raise KeyError("no")

    with pytest.raises(KeyError):
        play(episode, fail, {"line_f1": 1.0})
    assert episode.over

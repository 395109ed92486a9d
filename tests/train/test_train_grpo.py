"""GRPO with a micro model on scripted episodes: what is trained, what ends an episode, what stops the run.

The live episodes themselves are tested with the evaluation, which they belong to.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from conversations import TOOLS, conversation

from gumshoe.cli import main
from gumshoe.errors import SandboxError
from gumshoe.train.grpo import train_grpo
from gumshoe.train.grpo_config import GrpoConfig

HERE = "test_train_grpo:make_arena"

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")


class Counted:
    """Worth the more, the shorter the turn that opens it; over after two calls."""

    def __init__(self, fails: bool) -> None:
        self.fails = fails
        self.calls: list[tuple[str, dict[str, Any], bool]] = []
        self.closed = 0

    def reset(self, task: str) -> list[dict[str, Any]]:
        self.calls = []
        return conversation(int(task))[:2]

    def call(self, name: str, arguments: Mapping[str, Any], *, new_turn: bool = True) -> str:
        if self.fails:
            raise SandboxError("the sandbox is gone")
        self.calls.append((name, dict(arguments), new_turn))
        return f"[step {len(self.calls) - 1}] {name}"

    def answer(self, text: str) -> list[dict[str, Any]]:
        assert text == "", "GRPO reads calls itself"
        self.calls.append(("", {}, True))
        return []

    @property
    def over(self) -> bool:
        return len(self.calls) >= 2

    def scores(self) -> dict[str, float]:
        return {"line_f1": len(self.calls) / 2, "format": float(bool(self.calls))}

    def close(self) -> None:
        self.closed += 1


class CountedArena:
    tasks: Sequence[str] = ("0", "1")
    tools = TOOLS
    scores: Sequence[str] = ("line_f1", "format")

    def __init__(self, live: Mapping[str, Any]) -> None:
        self.fails = bool(live.get("fails"))
        self.made: list[Counted] = []

    def opening(self, task: str) -> list[dict[str, Any]]:
        return conversation(int(task))[:2]

    def episode(self) -> Counted:
        self.made.append(Counted(self.fails))
        return self.made[-1]


def make_arena(live: Mapping[str, Any]) -> CountedArena:
    return CountedArena(live)


def config(model: Path, out: Path, **changes: Any) -> GrpoConfig:
    base: dict[str, Any] = {
        "out": str(out),
        "model": str(model),
        "episodes": {
            "environment": HERE,
            "live": {},
            "weights": {"line_f1": 1.0, "format": 0.5},
            "max_tokens": 60,
        },
        "group": 4,
        "batch": 4,
        "max_steps": 2,
        "max_completion": 300,
        "temperature": 0.3,
        "learning_rate": 1e-4,
        "threads": 1,
        "device": "cpu",
    }
    return GrpoConfig.model_validate({**base, **changes})


@pytest.fixture(scope="module")
def caller(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A micro model that has learnt to call tools."""
    from micro_config import make_config

    from gumshoe.train.sft import train

    out = tmp_path_factory.mktemp("caller") / "run"
    return train(make_config(dataset, out, max_steps=30, learning_rate=1e-2)).model


def test_a_run_plays_learns_and_leaves_a_model(caller: Path, tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    arena = CountedArena({})
    result = train_grpo(config(caller, tmp_path / "run"), arena)
    entries = [json.loads(line) for line in result.log.read_text().splitlines()]
    rewards = [entry["reward"] for entry in entries if "reward" in entry]
    assert len(rewards) == 2
    assert max(rewards) > 0
    assert {"rewards/line_f1/mean", "rewards/format/mean"} <= entries[0].keys()
    assert len(arena.made) == 4
    played = [call for episode in arena.made for call in episode.calls if call[0]]
    assert played
    assert {new_turn for _, _, new_turn in played} == {True}
    assert all(len(episode.calls) <= 2 for episode in arena.made)
    assert all(episode.closed for episode in arena.made)
    AutoModelForCausalLM.from_pretrained(result.model)
    tokenizer = AutoTokenizer.from_pretrained(result.model)
    assert tokenizer.chat_template == AutoTokenizer.from_pretrained(caller).chat_template
    assert "response_template" not in json.loads((result.model / "tokenizer_config.json").read_text())
    card = (result.model / "README.md").read_text()
    assert "1 x line_f1, 0.5 x format" in card
    assert (tmp_path / "run" / "reward.svg").is_file()
    assert train_grpo(config(caller, tmp_path / "run"), arena).outcome is None


def test_a_sandbox_that_breaks_stops_the_run(caller: Path, tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match="the sandbox is gone"):
        train_grpo(config(caller, tmp_path / "run"), CountedArena({"fails": True}))
    assert not (tmp_path / "run" / "model").exists()


def test_prompts_are_those_that_were_trained(caller: Path, tmp_path: Path) -> None:
    from gumshoe.train.grpo import _trainer  # pyright: ignore[reportPrivateUsage]
    from gumshoe.train.model import load_tokenizer
    from gumshoe.train.run_folder import RunFolder

    wanted = config(caller, tmp_path / "run")
    trainer = _trainer(wanted, RunFolder(wanted), CountedArena({}))
    trainer._batch_environments = [None]  # pyright: ignore[reportPrivateUsage]
    made = trainer._tokenize_prompts([conversation(0)[:2]])[0][0]  # pyright: ignore[reportPrivateUsage]
    tokenizer: Any = load_tokenizer(str(caller), None)
    expected = tokenizer.apply_chat_template(
        conversation(0)[:2], tools=TOOLS, add_generation_prompt=True, return_dict=True
    )["input_ids"]
    assert made == expected


def test_the_command_runs_it(caller: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "grpo.yaml"
    path.write_text(config(caller, tmp_path / "run", max_steps=1).model_dump_json(exclude={"method"}))
    assert main(["train", str(path), "--method", "grpo"]) == 0
    said = capsys.readouterr().out
    assert "1 steps in" in said
    assert "mean reward" in said
    assert main(["train", str(path), "--method", "grpo"]) == 0
    assert "is trained already" in capsys.readouterr().out

"""GRPO with a micro model on scripted episodes: what is trained, what ends an episode, what stops the run.

The live episodes themselves are tested with the evaluation, which they belong to.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoModelForCausalLM, AutoTokenizer

from gumshoe.cli import main
from gumshoe.errors import ConfigError, SandboxError
from gumshoe.train.grpo import TokenRollouts, train_grpo
from gumshoe.train.model import load_tokenizer, read_template, training_template
from support.train.counted_episodes import CountedEpisodes, config
from support.train.training_rows import TOOLS

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")
CALL = '<tool_call>\n{"name": "view", "arguments": {"path": "shop.py"}}\n</tool_call>'


def test_a_run_plays_learns_and_leaves_a_model(caller: Path, tmp_path: Path) -> None:
    source = CountedEpisodes({})
    result = train_grpo(config(caller, tmp_path / "run"), source)
    entries = [json.loads(line) for line in result.log.read_text().splitlines()]
    rewards = [entry["reward"] for entry in entries if "reward" in entry]
    assert len(rewards) == 2
    assert max(rewards) > 0
    assert {"rewards/line_f1/mean", "rewards/format/mean"} <= entries[0].keys()
    assert len(source.made) == 8
    assert any("<tool_call>" in text for episode in source.made for text in episode.turns)
    assert all(1 <= len(episode.turns) <= 2 for episode in source.made)
    assert all(episode.closed for episode in source.made)
    AutoModelForCausalLM.from_pretrained(result.model)
    tokenizer = AutoTokenizer.from_pretrained(result.model)
    assert tokenizer.chat_template == AutoTokenizer.from_pretrained(caller).chat_template
    assert "response_template" not in json.loads((result.model / "tokenizer_config.json").read_text())
    card = (result.model / "README.md").read_text()
    assert "1 x line_f1, 0.5 x format" in card
    assert train_grpo(config(caller, tmp_path / "run"), source).facts is None


def test_a_template_is_used_and_saved_and_one_without_tools_is_refused(caller: Path, tmp_path: Path) -> None:
    hermes = config(caller, tmp_path / "run", chat_template="hermes", max_steps=1)
    saved = AutoTokenizer.from_pretrained(train_grpo(hermes, CountedEpisodes({})).model).chat_template
    assert saved == read_template("hermes")
    plain = tmp_path / "plain.jinja"
    plain.write_text("{% for message in messages %}{{ message['content'] }}{% endfor %}")
    source = CountedEpisodes({})
    with pytest.raises(ConfigError, match="chat_template: hermes"):
        train_grpo(config(caller, tmp_path / "refused", chat_template=str(plain)), source)
    assert not source.made


def test_a_sandbox_that_breaks_stops_the_run(caller: Path, tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match="the sandbox is gone"):
        train_grpo(config(caller, tmp_path / "run"), CountedEpisodes({"fails": range(4)}))
    assert not (tmp_path / "run" / "model").exists()


def test_a_run_goes_on_without_the_episodes_whose_sandboxes_do_not_start(caller: Path, tmp_path: Path) -> None:
    source = CountedEpisodes({"never_start": [1, 2, 3, 6]})
    result = train_grpo(config(caller, tmp_path / "run"), source)
    entries = [json.loads(line) for line in result.log.read_text().splitlines()]
    played = [episode for number, episode in enumerate(source.made) if number not in source.never_start]
    assert [entry["step"] for entry in entries if "reward" in entry] == [1, 2]
    assert all(episode.turns for episode in played)
    scores: Any = played[0].scores()
    assert entries[0]["reward"] == scores["line_f1"] + 0.5 * scores["format"]
    assert all(episode.closed for episode in source.made)


def rollouts(model: Path, source: CountedEpisodes, generate: Any, max_completion: int = 4096) -> tuple[Any, Any]:
    tokenizer: Any = load_tokenizer(str(model), None)
    return TokenRollouts(source, generate, tokenizer, training_template(tokenizer), max_completion), tokenizer


@pytest.mark.parametrize("trouble", ["fails", "never_start"])
def test_an_episode_whose_sandbox_does_not_start_or_breaks_has_no_scores(caller: Path, trouble: str) -> None:
    source = CountedEpisodes({trouble: [0]})
    played, tokenizer = rollouts(caller, source, lambda ids: ([[5, tokenizer.eos_token_id]] * len(ids), None))
    out = played.play(["0", "1"])
    assert out["episode_scores"] == [{"line_f1": None, "format": None}, {"line_f1": 0.0, "format": 0.0}]
    if trouble == "never_start":
        assert (out["completion_ids"][0], out["env_mask"][0]) == ([tokenizer.eos_token_id], [0])


@pytest.mark.parametrize("texts", [(CALL, "I think so."), ("I think so.", CALL), ("cut", CALL)])
def test_a_row_holds_the_tokens_that_a_server_would_be_asked_with(caller: Path, texts: tuple[str, str]) -> None:
    """The tokens before each turn are the chat template's rendering of the conversation, nudges included."""
    source = CountedEpisodes({})
    turns: list[list[int]] = []
    prompts: list[list[int]] = []

    def scripted(ids: list[list[int]]) -> tuple[list[list[int]], list[list[float]]]:
        prompts.append(ids[0])
        turn = turns[len(prompts) - 1]
        return [turn], [[-0.5] * len(turn)]

    played, tokenizer = rollouts(caller, source, scripted)
    end = [tokenizer.eos_token_id]
    turns += [tokenizer.encode(text) + end * (text != "cut") for text in texts]
    out = played.play(["0"])
    (episode,) = source.made
    for asked, rendered in zip(episode.requests, prompts, strict=True):
        expected = tokenizer.apply_chat_template(asked, tools=TOOLS, add_generation_prompt=True, return_dict=True)
        assert rendered == expected["input_ids"]
    (row,), (mask,), (logprobs,) = out["completion_ids"], out["env_mask"], out["logprobs"]
    assert prompts[1] + turns[1] == out["prompt_ids"][0] + row
    assert [token for token, trained in zip(row, mask, strict=True) if trained] == turns[0] + turns[1]
    assert logprobs == [-0.5 * trained for trained in mask]
    assert out["episode_scores"] == [{"line_f1": 0.5, "format": 1.0}]
    assert episode.closed


def test_an_episode_without_room_for_another_turn_is_over(caller: Path) -> None:
    source = CountedEpisodes({})
    played, _ = rollouts(caller, source, lambda ids: ([[5] * 40 for _ in ids], None), max_completion=30)
    out = played.play(["0", "1"])
    assert out["completion_ids"] == [[5] * 30] * 2
    assert out["logprobs"] is None
    assert [len(episode.turns) for episode in source.made] == [1, 1]


def test_a_conversation_that_shrinks_is_refused(caller: Path) -> None:
    source = CountedEpisodes({})

    def forget(ids: list[list[int]]) -> tuple[list[list[int]], None]:
        del source.made[-1].messages[0]
        return [[5]], None

    with pytest.raises(ConfigError, match="conversation that only grows"):
        rollouts(caller, source, forget)[0].play(["0"])
    assert source.made[-1].closed


def test_the_command_runs_it(caller: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "grpo.yaml"
    path.write_text(config(caller, tmp_path / "run", max_steps=1).model_dump_json(exclude={"method"}))
    assert main(["train", str(path), "--method", "grpo"]) == 0
    said = capsys.readouterr().out
    assert "steps: 1\n" in said
    assert "mean reward" in said
    assert main(["train", str(path), "--method", "grpo"]) == 0
    assert "has already been trained" in capsys.readouterr().out

"""Training on TRL's trainer with a micro model: what comes out, going on after a stop, adapters, wrong inputs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from gumshoe.errors import ConfigError, DatasetError
from gumshoe.train.card import Outcome
from gumshoe.train.config import TrainConfig
from gumshoe.train.sft import TrainResult, train
from gumshoe.train.untaught import untaught_tokens
from support.train.micro_config import make_config
from support.train.training_rows import TOOLS, conversation, row, write_dataset


@pytest.fixture(scope="module")
def trained(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[TrainConfig, TrainResult[Outcome]]:
    config = make_config(dataset, tmp_path_factory.mktemp("runs") / "run", eval_split="test", save_every=2, keep=2)
    return config, train(config)


def losses(log: Path) -> list[float]:
    entries = [json.loads(line) for line in log.read_text().splitlines()]
    return [entry["loss"] for entry in entries if "loss" in entry]


def test_the_run_folder_holds_everything(trained: tuple[TrainConfig, TrainResult[Outcome]]) -> None:
    config, result = trained
    out = Path(config.out)
    assert result.model == out / "model"
    for name in ("config.yaml", "log.jsonl", "loss.svg", "loss.png", "model/README.md"):
        assert (out / name).is_file(), name
    assert (out / "loss.svg").read_text().count("<svg") == 1
    assert sorted(path.name for path in (out / "checkpoints").glob("checkpoint-*")) == ["checkpoint-2", "checkpoint-4"]
    assert not list(out.glob(".*"))


def test_the_log_has_the_losses_by_step(trained: tuple[TrainConfig, TrainResult[Outcome]]) -> None:
    entries = [json.loads(line) for line in trained[1].log.read_text().splitlines()]
    assert [entry["step"] for entry in entries if "loss" in entry] == [1, 2, 3, 4]
    assert [entry["step"] for entry in entries if "eval_loss" in entry] == [3, 4]
    assert losses(trained[1].log)[-1] < losses(trained[1].log)[0]


def test_the_outcome_counts_rows_and_tokens(trained: tuple[TrainConfig, TrainResult[Outcome]]) -> None:
    outcome = trained[1].outcome
    assert outcome is not None
    assert (outcome.rows, outcome.skipped, outcome.steps) == (6, 0, 4)
    assert 0 < outcome.trained_tokens < outcome.tokens
    assert outcome.eval_loss is not None


def test_the_model_loads_and_renders_as_it_was_trained(trained: tuple[TrainConfig, TrainResult[Outcome]]) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig

    config, result = trained
    model: Any = AutoModelForCausalLM.from_pretrained(result.model)
    tokenizer: Any = AutoTokenizer.from_pretrained(result.model)
    start: Any = AutoTokenizer.from_pretrained(config.model)
    assert tokenizer.chat_template == start.chat_template
    settings = GenerationConfig.from_pretrained(str(result.model))
    assert settings.eos_token_id == [tokenizer.eos_token_id, tokenizer.pad_token_id]
    assert model.dtype == torch.float32
    prompt = tokenizer.apply_chat_template(
        conversation(0)[:2], tools=TOOLS, add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    assert model.generate(**prompt, max_new_tokens=3).shape[1] == prompt["input_ids"].shape[1] + 3


def test_the_card_names_data_and_config(trained: tuple[TrainConfig, TrainResult[Outcome]]) -> None:
    from gumshoe.config import config_hash

    config, result = trained
    card = (result.model / "README.md").read_text()
    assert card.startswith("---\nlibrary_name: transformers\n")
    assert config.dataset in card
    assert config_hash(config) in card
    assert "6 conversations" in card


def test_a_finished_run_is_not_trained_again(trained: tuple[TrainConfig, TrainResult[Outcome]]) -> None:
    config, result = trained
    before = (result.model / "model.safetensors").stat().st_mtime_ns
    assert train(config).outcome is None
    assert (result.model / "model.safetensors").stat().st_mtime_ns == before


def test_a_stopped_run_goes_on_to_the_same_losses(
    trained: tuple[TrainConfig, TrainResult[Outcome]], dataset: Path, tmp_path: Path
) -> None:
    config, result = trained
    stopped = tmp_path / "stopped"
    shutil.copytree(config.out, stopped)
    shutil.rmtree(stopped / "model")
    shutil.rmtree(stopped / "checkpoints" / "checkpoint-4")
    again = config.model_copy(update={"out": str(stopped)})
    (stopped / "config.yaml").write_text((stopped / "config.yaml").read_text().replace(config.out, str(stopped)))
    resumed = train(again)
    assert losses(resumed.log) == pytest.approx(losses(result.log), rel=1e-6)
    assert resumed.outcome is not None
    assert resumed.outcome.steps == 4


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning")
def test_adapters_are_merged_into_the_weights(start: Path, dataset: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file

    config = make_config(dataset, tmp_path / "lora", model=str(start), method="lora", learning_rate=0.05)
    result = train(config)
    before, after = load_file(start / "model.safetensors"), load_file(result.model / "model.safetensors")
    assert before.keys() == after.keys()
    changed = {key for key in before if not before[key].equal(after[key])}
    assert "model.layers.0.self_attn.q_proj.weight" in changed
    assert "model.embed_tokens.weight" not in changed
    assert f"base_model: {start}" in (result.model / "README.md").read_text()
    assert same_answers(start, Path(config.out) / "adapters", result.model)


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning")
@pytest.mark.parametrize("tied", [False, True])
def test_adapters_come_with_the_rows_of_tokens_that_the_model_cannot_tell_apart(
    tied: bool, start: Path, dataset: Path, tmp_path: Path
) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model: Any = AutoModelForCausalLM.from_pretrained(start)
    tokenizer = AutoTokenizer.from_pretrained(start)
    call, twin, other = tokenizer.convert_tokens_to_ids(["<tool_call>", "<think>", "</tool_call>"])
    for layer in (model.get_input_embeddings(), model.get_output_embeddings()):
        layer.weight.data[call] = layer.weight.data[twin]
    if tied:
        model.config.tie_word_embeddings = True
        model.tie_weights()
    model.save_pretrained(str(tmp_path / "start"))
    tokenizer.save_pretrained(str(tmp_path / "start"))
    config = make_config(dataset, tmp_path / "lora", model=str(tmp_path / "start"), method="lora", learning_rate=0.05)
    result = train(config)
    trained: Any = AutoModelForCausalLM.from_pretrained(result.model)
    before, after = model.get_output_embeddings().weight, trained.get_output_embeddings().weight
    assert [row for row in range(len(before)) if not before[row].equal(after[row])] == [call]
    assert not untaught_tokens(trained, [call, twin, other])
    assert same_answers(tmp_path / "start", Path(config.out) / "adapters", result.model)


def same_answers(start: Path, adapters: Path, merged: Path) -> bool:
    """Whether the merged model says what the model with its adapters says, and not what the model says alone."""
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    tokens = torch.arange(40)[None]
    with torch.no_grad():
        alone: Any = AutoModelForCausalLM.from_pretrained(start).eval()(tokens).logits
        adapted: Any = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(start), str(adapters)).eval()
        wanted = adapted(tokens).logits
        found: Any = AutoModelForCausalLM.from_pretrained(merged).eval()(tokens).logits
    return bool(torch.allclose(found, wanted, atol=1e-3)) and not torch.allclose(alone, wanted, atol=1e-2)


def test_packed_rows_have_the_loss_of_rows_apart(dataset: Path, tmp_path: Path) -> None:
    common: dict[str, Any] = {"limit": 3, "max_length": 2048, "max_steps": 1}
    apart = train(make_config(dataset, tmp_path / "apart", batch=3, **common))
    packed = train(make_config(dataset, tmp_path / "packed", batch=1, packing=True, **common))
    assert packed.outcome is not None
    assert packed.outcome.rows == 3
    assert losses(packed.log) == pytest.approx(losses(apart.log), rel=1e-4)


def test_rows_too_long_are_left_out_when_asked_to(tmp_path: Path) -> None:
    long = row(6, messages=[*conversation(6), *conversation(6)[1:] * 3])
    data = write_dataset(tmp_path / "data", {"train": [row(0), row(1), long]})
    with pytest.raises(DatasetError, match="row episode-6 has more than max_length 700"):
        train(make_config(data, tmp_path / "a", max_length=700))
    outcome = train(make_config(data, tmp_path / "a", max_length=700, too_long="skip", max_steps=1)).outcome
    assert outcome is not None
    assert (outcome.rows, outcome.skipped) == (2, 1)


def test_a_folder_with_something_else_is_left_alone(dataset: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(ConfigError, match="is not a training run"):
        train(make_config(dataset, tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_run_of_another_config_is_left_alone(trained: tuple[TrainConfig, TrainResult[Outcome]]) -> None:
    config = trained[0].model_copy(update={"learning_rate": 0.5, "threads": 1})
    with pytest.raises(ConfigError, match=r"another config \(learning_rate differ\)"):
        train(config)


def test_a_run_of_another_kind_is_left_alone(dataset: Path, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("workers: 4\n")
    with pytest.raises(ConfigError, match="contains a different kind of run"):
        train(make_config(dataset, tmp_path))


def test_out_may_not_be_a_file(dataset: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="is a file"):
        train(make_config(dataset, tmp_path / "file"))


def test_a_model_that_is_not_there(dataset: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"model .*nowhere cannot be loaded: give a model folder"):
        train(make_config(dataset, tmp_path / "run", model=str(tmp_path / "nowhere")))

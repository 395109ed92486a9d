"""Supervised training with a micro model: what comes out, which checkpoint is kept, going on after a stop, adapters."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from peft import PeftModel
from safetensors.torch import load_file
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    GenerationConfig,
    MixtralConfig,
    MixtralForCausalLM,
    set_seed,
)
from trl.trainer.sft_config import SFTConfig
from trl.trainer.sft_trainer import SFTTrainer

from gumshoe.config import config_hash
from gumshoe.errors import ConfigError
from gumshoe.train.config import LoraSection, TrainConfig
from gumshoe.train.episodes import GeneratedTurn, Request, play
from gumshoe.train.rows.render import UNTRAINED
from gumshoe.train.run import TrainResult, lora_arguments
from gumshoe.train.sft import SeekerTrainer, indistinguishable_tokens, train_sft
from support.train.counted_episodes import EPISODES, CountedEpisodes
from support.train.tiny_model import make_config, tiny_model
from support.train.training_rows import TOOLS, conversation

Trained = tuple[TrainConfig, TrainResult]


def measured(log: Path, key: str = "loss") -> list[float]:
    return [entry[key] for line in log.read_text().splitlines() if key in (entry := json.loads(line))]


def test_the_run_folder_holds_everything(trained: Trained) -> None:
    config, result = trained
    out = Path(config.out)
    assert result.model == out / "model"
    for name in ("config.yaml", "log.jsonl", "model/README.md"):
        assert (out / name).is_file(), name
    assert sorted(path.name for path in (out / "checkpoints").glob("checkpoint-*")) == ["checkpoint-2", "checkpoint-4"]
    assert not list(out.glob(".*"))
    entries = [json.loads(line) for line in result.log.read_text().splitlines()]
    assert [entry["step"] for entry in entries if "loss" in entry] == [1, 2, 3, 4]
    assert [entry["step"] for entry in entries if "eval_loss" in entry] == [3, 4]
    assert measured(result.log)[-1] < measured(result.log)[0]
    facts: Any = result.facts
    assert (facts["rows"], facts["rows left out, too long"], facts["steps"]) == (6, 0, 4)
    assert 0 < facts["tokens trained"] < facts["tokens"]
    card = (result.model / "README.md").read_text()
    assert card.startswith("---\nlibrary_name: transformers\n")
    assert config.dataset in card
    assert config_hash(config) in card
    assert "| rows | 6 |" in card


def test_the_model_loads_and_renders_as_it_was_trained(trained: Trained) -> None:
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


def test_a_finished_run_is_not_trained_again(trained: Trained) -> None:
    config, result = trained
    before = (result.model / "model.safetensors").stat().st_mtime_ns
    assert train_sft(config).facts is None
    assert (result.model / "model.safetensors").stat().st_mtime_ns == before


def test_a_stopped_run_goes_on_to_the_same_losses(trained: Trained, tmp_path: Path) -> None:
    config, result = trained
    stopped = tmp_path / "stopped"
    shutil.copytree(config.out, stopped)
    shutil.rmtree(stopped / "model")
    shutil.rmtree(stopped / "checkpoints" / "checkpoint-4")
    again = config.model_copy(update={"out": str(stopped)})
    (stopped / "config.yaml").write_text((stopped / "config.yaml").read_text().replace(config.out, str(stopped)))
    resumed = train_sft(again)
    assert measured(resumed.log) == pytest.approx(measured(result.log), rel=1e-6)
    assert resumed.facts is not None
    assert resumed.facts["steps"] == 4


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning")
def test_adapters_are_merged_into_the_weights(start: Path, dataset: Path, tmp_path: Path) -> None:
    config = make_config(dataset, tmp_path / "lora", model=str(start), method="lora", learning_rate=0.05)
    result = train_sft(config)
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
    result = train_sft(config)
    trained: Any = AutoModelForCausalLM.from_pretrained(result.model)
    before, after = model.get_output_embeddings().weight, trained.get_output_embeddings().weight
    assert [row for row in range(len(before)) if not before[row].equal(after[row])] == [call]
    assert not indistinguishable_tokens(trained, [call, twin, other])
    assert same_answers(tmp_path / "start", Path(config.out) / "adapters", result.model)


def same_answers(start: Path, adapters: Path, merged: Path) -> bool:
    """Whether the merged model says what the model with its adapters says, and not what the model says alone."""
    tokens = torch.arange(40)[None]
    with torch.no_grad():
        alone: Any = AutoModelForCausalLM.from_pretrained(start).eval()(tokens).logits
        adapted: Any = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(start), str(adapters)).eval()
        wanted = adapted(tokens).logits
        found: Any = AutoModelForCausalLM.from_pretrained(merged).eval()(tokens).logits
    return bool(torch.allclose(found, wanted, atol=1e-3)) and not torch.allclose(alone, wanted, atol=1e-2)


def test_packed_rows_have_the_loss_of_rows_apart(dataset: Path, tmp_path: Path) -> None:
    common: dict[str, Any] = {"limit": 3, "max_length": 2048, "max_steps": 1}
    apart = train_sft(make_config(dataset, tmp_path / "apart", batch=3, **common))
    packed = train_sft(make_config(dataset, tmp_path / "packed", batch=1, packing=True, **common))
    assert packed.facts is not None
    assert packed.facts["rows"] == 3
    assert measured(packed.log) == pytest.approx(measured(apart.log), rel=1e-4)


def test_a_run_of_another_config_is_left_alone(trained: Trained) -> None:
    config = trained[0].model_copy(update={"learning_rate": 0.5, "threads": 1})
    with pytest.raises(ConfigError, match=r"another config \(learning_rate differ\)"):
        train_sft(config)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("thesis.txt", "years of work", "is not a training run"),
        ("config.yaml", "workers: 4\n", "contains a different kind of run"),
    ],
)
def test_what_is_no_training_run_is_left_alone(
    dataset: Path, tmp_path: Path, name: str, content: str, message: str
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(ConfigError, match=message):
        train_sft(make_config(dataset, tmp_path))
    assert (tmp_path / name).read_text() == content
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_the_checkpoint_of_the_best_live_episodes_is_kept_and_training_stops(dataset: Path, tmp_path: Path) -> None:
    live = {"tasks": ["0"], "worth": [0.2, 0.7, 0.3, 0.3, 0.9]}
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
        episodes={"environment": EPISODES, "live": live, "weights": {"line_f1": 1.0}, "max_tokens": 4},
    )
    result = train_sft(config)
    assert measured(result.log, "eval_seeker_score") == [0.2, 0.7, 0.3, 0.3]
    facts: Any = result.facts
    assert (facts["step kept, the best"], facts["mean reward of live episodes"], facts["steps"]) == (2, 0.7, 4)
    assert facts["held-out token accuracy"] is not None
    card = (result.model / "README.md").read_text()
    assert "| step kept, the best | 2 |" in card
    assert "| mean reward of live episodes | 0.7000 |" in card
    kept = (Path(config.out) / "checkpoints" / "checkpoint-2" / "model.safetensors").read_bytes()
    assert (result.model / "model.safetensors").read_bytes() == kept


def test_the_checkpoint_of_the_lowest_held_out_loss_is_kept(dataset: Path, tmp_path: Path) -> None:
    every = {"eval_split": "test", "eval_every": 1, "save_every": 1}
    result = train_sft(make_config(dataset, tmp_path / "run", max_steps=3, best="eval_loss", **every))
    held_out = measured(result.log, "eval_loss")
    assert result.facts is not None
    assert result.facts["held-out loss"] == min(held_out)
    assert result.facts["step kept, the best"] == 1 + held_out.index(min(held_out))


def test_an_episode_is_closed_also_when_the_writer_fails() -> None:
    episode = CountedEpisodes({}).episode("0")

    def fail(request: Request) -> GeneratedTurn:
        raise KeyError("no")

    with pytest.raises(KeyError):
        play(episode, fail, {"line_f1": 1.0})
    assert episode.closed == 1


def test_bfloat16_is_left_to_what_the_processor_has_and_losses_go_to_a_tracker(dataset: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"bf16": "auto", "max_steps": 1, "report_to": ("tensorboard",)}
    result = train_sft(make_config(dataset, tmp_path / "run", **options))
    weights = load_file(result.model / "model.safetensors")
    has_instructions = re.search(r"\b(avx512_bf16|amx_bf16|bf16)\b", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    assert {str(weight.dtype) for weight in weights.values()} == {
        "torch.bfloat16" if has_instructions else "torch.float32"
    }
    (events,) = (tmp_path / "run").rglob("events.out.tfevents.*")
    assert b"train/loss" in events.read_bytes()


# --- the loss that is computed on a processor is TRL's own, with its gradients

ROWS = [
    {"input_ids": list(range(5, 35)), "labels": [UNTRAINED] * 4 + list(range(9, 20)) + [UNTRAINED] * 15},
    {"input_ids": list(range(40, 52)), "labels": [UNTRAINED] * 9 + [49, 50, 51]},
    {"input_ids": list(range(60, 69)), "labels": [60] + [UNTRAINED] * 8},  # the first token has no logits
]


def mixtral() -> Any:
    """A mixture of experts, whose loss has a part that logits do not tell."""
    set_seed(0)
    sizes: dict[str, Any] = {"vocab_size": 128, "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1}
    heads: dict[str, Any] = {"num_attention_heads": 2, "num_key_value_heads": 2}
    return MixtralForCausalLM(MixtralConfig(**sizes, **heads, num_local_experts=2, router_aux_loss_coef=0.5))


def trainer_of(model: Any, out: Path, kind: str) -> SeekerTrainer:
    adapters = lora_arguments(LoraSection.model_validate({})) if "adapters" in kind else None
    if adapters is not None and kind == "adapters and rows":
        adapters.trainable_token_indices = {"model.embed_tokens": [10, 50], "lm_head": [10, 50]}
    arguments = SFTConfig(
        output_dir=str(out),
        per_device_train_batch_size=len(ROWS),
        dataset_kwargs={"skip_prepare_dataset": True},
        activation_checkpointing=False,
        bf16=False,
        use_cpu=True,
        report_to=[],
    )
    return SeekerTrainer(
        model=model,
        args=arguments,
        train_dataset=Dataset.from_list(ROWS),
        processing_class=AutoTokenizer.from_pretrained(tiny_model()),
        peft_config=adapters,
    )


def loss_and_gradients(kind: type[SFTTrainer], trainer: SeekerTrainer, tokens: int | None) -> tuple[float, list[Any]]:
    model: Any = trainer.model
    model.train()
    model.zero_grad()
    batch = trainer.data_collator(ROWS)
    count = None if tokens is None else torch.tensor(tokens)
    trainer.current_gradient_accumulation_steps = 1  # as the training loop sets it
    loss: Any = kind.compute_loss(trainer, model, batch, num_items_in_batch=count)
    loss.backward()
    return loss.item(), [each.grad.clone() for each in model.parameters() if each.grad is not None]


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning")
@pytest.mark.parametrize("tokens", [None, 14])
@pytest.mark.parametrize("kind", ["all weights", "adapters", "adapters and rows", "experts"])
def test_it_is_the_loss_of_trl_with_its_gradients(kind: str, tokens: int | None, tmp_path: Path) -> None:
    model = mixtral() if kind == "experts" else AutoModelForCausalLM.from_pretrained(tiny_model())
    trainer = trainer_of(model, tmp_path, kind)
    loss, gradients = loss_and_gradients(SeekerTrainer, trainer, tokens)
    expected, theirs = loss_and_gradients(SFTTrainer, trainer, tokens)
    assert loss == pytest.approx(expected, rel=1e-5)
    assert loss > 0
    assert len(gradients) == len(theirs) > 0
    for ours, other in zip(gradients, theirs, strict=True):
        torch.testing.assert_close(ours, other, rtol=1e-4, atol=1e-6)


def test_rows_without_trained_tokens_give_nothing(tmp_path: Path) -> None:
    trainer = trainer_of(AutoModelForCausalLM.from_pretrained(tiny_model()), tmp_path, "all weights")
    model: Any = trainer.model
    batch = trainer.data_collator([ROWS[2]])
    loss: Any = trainer.compute_loss(model.train(), batch)
    loss.backward()
    assert loss.item() == 0
    assert all(not each.grad.any() for each in model.parameters() if each.grad is not None)

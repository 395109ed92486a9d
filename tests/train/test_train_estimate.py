"""The estimates agree with known values: published parameter counts, and a real model's."""

from __future__ import annotations

from pathlib import Path

import pytest

from gumshoe.cli import main
from gumshoe.config import load_config
from gumshoe.errors import ConfigError
from gumshoe.train.config import TrainConfig
from gumshoe.train.estimate import DEVICES, estimate, shape_of
from gumshoe.train.shapes import SHAPES, read_shape

RECIPES = sorted(Path(__file__).parents[2].glob("configs/train/qwen*.yaml"))


def config(**changes: object) -> TrainConfig:
    base: dict[str, object] = {"out": "o", "dataset": "d", "model": "Qwen/Qwen3-1.7B", "max_length": 4096}
    return TrainConfig.model_validate({**base, **changes})


@pytest.mark.parametrize(
    ("model", "billions", "active"),
    [
        ("Qwen/Qwen3-0.6B", 0.6, 0.6),
        ("Qwen/Qwen3-1.7B", 1.7, 1.7),
        ("Qwen/Qwen3-4B", 4.0, 4.0),
        ("Qwen/Qwen3-30B-A3B", 30.5, 3.0),
        ("Qwen/Qwen2.5-Coder-7B-Instruct", 7.6, 7.1),
    ],
)
def test_parameters_are_those_of_the_model_cards(model: str, billions: float, active: float) -> None:
    assert SHAPES[model].parameters / 1e9 == pytest.approx(billions, abs=0.05)
    assert SHAPES[model].active_parameters / 1e9 == pytest.approx(active, abs=0.05)


def test_a_folders_parameters_are_counted_exactly(start: Path) -> None:
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(start)
    assert shape_of(config(model=str(start))).parameters == model.num_parameters()


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning")
def test_adapters_are_counted_as_peft_counts_them(start: Path) -> None:
    from peft import get_peft_model
    from transformers import AutoModelForCausalLM

    from gumshoe.train.arguments import lora_arguments

    for targets in ("all-linear", ["q_proj", "down_proj"]):
        wanted = config(model=str(start), method="lora", lora={"rank": 3, "targets": targets})
        adapted = get_peft_model(AutoModelForCausalLM.from_pretrained(start), lora_arguments(wanted.lora))
        trainable, _ = adapted.get_nb_trainable_parameters()
        assert estimate(wanted, tokens=1, device=DEVICES["h200"]).trained == trainable


def test_terms_move_as_they_must() -> None:
    h100 = DEVICES["h100-80gb"]
    one = estimate(config(bf16=True), tokens=1e6, device=h100)
    shared = estimate(config(bf16=True), tokens=1e6, device=h100, devices=4, sharded=True)
    assert shared.memory_gb["optimizer"] == pytest.approx(one.memory_gb["optimizer"] / 4)
    assert shared.seconds == pytest.approx(one.seconds / 4)
    saved = estimate(config(bf16=True, gradient_checkpointing=True), tokens=1e6, device=h100)
    assert saved.memory_gb["activations"] < one.memory_gb["activations"] / 4
    assert saved.seconds > one.seconds
    small = estimate(config(method="qlora", bf16=True), tokens=1e6, device=h100)
    assert small.memory_gb["weights"] < one.memory_gb["weights"] / 5
    assert small.total_gb < one.total_gb


def test_the_sizes_of_a_model_folder_are_read(start: Path) -> None:
    assert 1e5 < shape_of(config(model=str(start))).parameters < 1e6


def test_sizes_that_are_not_known_are_said_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="the sizes of who/knows are not known"):
        shape_of(config(model="who/knows"))
    (tmp_path / "config.json").write_text('{"hidden_size": 4, "num_attention_heads": 2}')
    with pytest.raises(ConfigError, match="it has no num_hidden_layers"):
        read_shape(tmp_path / "config.json")


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.stem)
def test_every_recipe_says_what_it_takes(recipe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    load_config(TrainConfig, recipe)
    lines = recipe.read_text().splitlines()
    said = next(line for line in lines if line.startswith("# Expected for 10,000 rows"))
    words = next(line for line in lines if "gumshoe train" in line).split("gumshoe train ")[1].split()
    assert main(["train", str(recipe), *words[1:]]) == 0
    shown = dict(line.split("  ", 1) for line in capsys.readouterr().out.splitlines() if "  " in line)
    assert shown["memory on each device"].strip() in said
    assert shown["time"].strip() in said


def test_estimate_refuses_what_it_cannot_say(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", str(RECIPES[0]), "--estimate", "--device", "abacus"]) == 2
    assert "known are a100-40gb" in capsys.readouterr().err
    assert main(["train", str(RECIPES[0].with_name("grpo.yaml")), "--estimate"]) == 2

"""The config: what it refuses, and that every field says what it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gumshoe.config import load_config, parse_yaml
from gumshoe.errors import ConfigError
from gumshoe.train.commands.methods import read_config
from gumshoe.train.config import TrainConfig
from gumshoe.train.dpo_config import DpoConfig
from gumshoe.train.grpo_config import GrpoConfig
from gumshoe.train.trainer_config import LoraSection

CONFIGS = Path(__file__).parents[2] / "configs" / "train"


@pytest.mark.parametrize("section", [TrainConfig, LoraSection, DpoConfig])
def test_every_field_has_a_description(section: Any) -> None:
    assert all(field.description for field in section.model_fields.values())


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_published_config_is_valid(path: Path) -> None:
    config = read_config(path, ())
    method = parse_yaml(path.read_text()).get("method")
    assert isinstance(config, {"grpo": GrpoConfig, "dpo": DpoConfig}.get(method, TrainConfig))


def test_grpo_steps_must_be_whole_batches() -> None:
    with pytest.raises(ConfigError, match="batch 3 must divide the 16 episodes of a step"):
        load_config(GrpoConfig, CONFIGS / "grpo.yaml", ["batch=3"])


def test_an_unknown_key_is_refused_with_the_nearest_known(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("out: a\ndataset: b\nmodel: m\nlora: {ranks: 2}\n")
    with pytest.raises(ConfigError, match=r"unknown key 'lora.ranks'; did you mean 'rank'\?"):
        load_config(TrainConfig, path)

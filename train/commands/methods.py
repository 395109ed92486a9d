"""Which kind of config a file holds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gumshoe.config import apply_overrides, load_config, read_yaml
from gumshoe.plugins import search_beside
from gumshoe.train.config import TrainConfig
from gumshoe.train.dpo_config import DpoConfig
from gumshoe.train.grpo_config import GrpoConfig

__all__ = ["AnyConfig", "read_config"]

AnyConfig = TrainConfig | GrpoConfig | DpoConfig
"""The configs of all kinds of training."""


def read_config(path: Path, overrides: Sequence[str]) -> AnyConfig:
    """The config of the kind that its method asks for; modules beside it can be imported. Raises ConfigError."""
    method = apply_overrides(read_yaml(path), overrides).get("method")
    kinds: dict[object, type[AnyConfig]] = {"grpo": GrpoConfig, "dpo": DpoConfig}
    search_beside(path)
    return load_config(kinds.get(method, TrainConfig), path, overrides)

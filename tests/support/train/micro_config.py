"""A config of a model that trains in seconds."""

from __future__ import annotations

from pathlib import Path

from gumshoe.train.config import TrainConfig
from support.train.tiny_model import tiny_model

__all__ = ["make_config"]


def make_config(dataset: Path, out: Path, **changes: object) -> TrainConfig:
    """A config of a few steps with a tiny model."""
    base: dict[str, object] = {
        "out": str(out),
        "dataset": str(dataset),
        "model": str(tiny_model()),
        "max_length": 1024,
        "max_steps": 4,
        "batch": 2,
        "learning_rate": 1e-2,
        "log_every": 1,
        "device": "cpu",
    }
    return TrainConfig.model_validate({**base, **changes})

"""A config of a model that trains in seconds."""

from __future__ import annotations

from pathlib import Path

from gumshoe.train.config import TrainConfig

__all__ = ["MICRO", "make_config"]

MICRO = {"layers": 2, "hidden": 80, "heads": 2, "head_dim": 16, "intermediate": 32, "vocab": 1024, "context": 2}
"""Sizes of a model that trains in seconds. Its positions turn so slowly that its heads have content dimensions."""


def make_config(dataset: Path, out: Path, **changes: object) -> TrainConfig:
    """A config of a few steps with a micro model."""
    base: dict[str, object] = {
        "out": str(out),
        "dataset": str(dataset),
        "scratch": MICRO,
        "max_length": 1024,
        "max_steps": 4,
        "batch": 2,
        "learning_rate": 1e-2,
        "log_every": 1,
        "device": "cpu",
    }
    return TrainConfig.model_validate({**base, **changes})

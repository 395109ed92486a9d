"""The folder of a training run: its layout, and which run it belongs to."""

from __future__ import annotations

import os
from pathlib import Path

from gumshoe.config import dump_config, load_config
from gumshoe.errors import ConfigError
from gumshoe.train.trainer_config import TrainerConfig

__all__ = ["CHECKPOINTS", "TrainingFolder"]

CHECKPOINTS = "checkpoints"

_FREE = {"threads", "log_every", "keep", "report_to", "device"}
"""Fields that may change between a run and its continuation: they do not change what is learned."""


class TrainingFolder:
    """Opens the folder of a run: a new one, or the one left by an earlier start of the same config.

    config.yaml   the whole config          log.jsonl    losses, one entry a line
    checkpoints/  to go on from             loss.svg, loss.png (reward.svg, reward.png)
    rows/         what trains, as tokens; gone when training is done
    adapters/     where adapters were trained, before they are merged
    model/        the result; it is there when training is done

    Raises:
        ConfigError: the folder holds something else, or a run of another config.
    """

    def __init__(self, config: TrainerConfig) -> None:
        self.path = Path(config.out)
        self.config_file = self.path / "config.yaml"
        self.log = self.path / "log.jsonl"
        self.checkpoints = self.path / CHECKPOINTS
        self.rows = self.path / "rows"
        self.adapters = self.path / "adapters"
        self.model = self.path / "model"
        self._claim(config)

    @property
    def done(self) -> bool:
        """Whether the model is there."""
        return self.model.is_dir()

    def newest_checkpoint(self) -> Path | None:
        """The checkpoint to go on from; None where there is none."""
        found = [path for path in self.checkpoints.glob("checkpoint-*") if (path / "trainer_state.json").is_file()]
        return max(found, key=lambda path: int(path.name.rpartition("-")[2]), default=None)

    def _claim(self, config: TrainerConfig) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise ConfigError(f"out: {self.path} is a file: choose another folder")
        if self.config_file.is_file():
            self._compare(config)
        elif self.path.is_dir() and any(self.path.iterdir()):
            raise ConfigError(f"out: {self.path} is not a training run: choose another folder")
        fresh = self.config_file.with_suffix(f".new{os.getpid()}")
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            fresh.write_text(dump_config(config), encoding="utf-8")
            fresh.replace(self.config_file)
        except OSError as error:
            raise ConfigError(f"out: {self.path} cannot be written: {error.strerror or error}") from None

    def _compare(self, config: TrainerConfig) -> None:
        try:
            earlier = load_config(type(config), self.config_file)
        except ConfigError:
            raise ConfigError(f"out: {self.path} contains a different kind of run: choose another folder") from None
        changed = sorted(
            name
            for name in type(config).model_fields
            if name not in _FREE and getattr(earlier, name) != getattr(config, name)
        )
        # Nothing is learned before the first checkpoint: until then the config may change.
        if changed and (self.done or self.newest_checkpoint()):
            raise ConfigError(
                f"out: {self.path} contains a run with another config ({', '.join(changed)} differ): "
                "choose another folder, or delete that one"
            )

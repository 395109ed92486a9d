"""What all kinds of training have in common, and what those share that train on the rows of a dataset."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, PositiveFloat, PositiveInt

from gumshoe.config import Config

__all__ = ["LoraSection", "RowsConfig", "TrainerConfig"]


class LoraSection(Config):
    """Low-rank adapters. They are merged into the weights when training ends."""

    rank: PositiveInt = Field(16, description="rank of the adapters")
    alpha: PositiveInt = Field(32, description="scale of the adapters, over the rank")
    dropout: float = Field(0.0, ge=0, lt=1, description="dropout in front of the adapters")
    targets: str | tuple[str, ...] = Field("all-linear", description="layers that get adapters")


class TrainerConfig(Config):
    """One run: which model, and how a trainer works on it."""

    out: str = Field(description="run folder; the model goes into its folder model/")
    model: str = Field(
        description="model to start from: a folder, such as one that was fine-tuned, a hub ID, or a .gguf file"
    )
    revision: str | None = Field(None, description="revision of a hub model; null: the newest")
    chat_template: str | None = Field(
        None,
        description="replaces the model's template: hermes, which is bundled, or a file; saved with the model",
    )
    learning_rate: PositiveFloat = Field(1e-6, description="peak learning rate")
    clip: PositiveFloat = Field(1.0, description="gradient norm above which gradients are scaled down")
    bf16: bool | Literal["auto"] = Field(
        False, description="compute in bfloat16; auto: if the device has instructions for it"
    )
    gradient_checkpointing: bool = Field(False, description="less memory, a third more time")
    seed: int = Field(0, ge=0, description="seed of the order, of dropout and of sampling")
    threads: PositiveInt | None = Field(None, description="processor threads; null: torch's default")
    device: Literal["auto", "cpu"] = Field("auto", description="cpu: do not use an accelerator")
    log_every: PositiveInt = Field(10, description="steps between two log entries")
    keep: PositiveInt = Field(1, description="checkpoints kept")
    report_to: tuple[str, ...] = Field((), description="trackers supported by transformers, such as trackio or wandb")


class RowsConfig(TrainerConfig):
    """One run on the rows of a dataset, in epochs."""

    dataset: str = Field(description="dataset folder, as `gumshoe export` writes it")
    train_split: str = Field("train", description="split that is trained on")
    eval_split: str | None = Field(None, description="split for evaluation, never trained on; null: none")
    limit: PositiveInt | None = Field(None, description="maximum number of rows, from the beginning; null: all")
    epochs: PositiveFloat = Field(1.0, description="passes over the rows")
    max_steps: int = Field(-1, ge=-1, description="optimizer steps; -1: determined by epochs")
    batch: PositiveInt = Field(1, description="rows that go through the model at once, on each device")
    accumulate: PositiveInt = Field(1, description="batches of one optimizer step")
    schedule: Literal["linear", "cosine", "constant_with_warmup"] = Field(
        "linear", description="learning rate schedule"
    )
    warmup: float = Field(0.1, ge=0, lt=1, description="share of the steps in which the learning rate rises")
    save_every: PositiveInt | None = Field(
        None, description="steps between two checkpoints; null: at every epoch's end"
    )

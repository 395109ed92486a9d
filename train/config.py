"""What a training run is made of."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from gumshoe.config import Config
from gumshoe.train.live import LiveSection
from gumshoe.train.masked_turns import RULES, Rule
from gumshoe.train.samples import Sampling

__all__ = ["LoraSection", "TrainConfig"]


class LoraSection(Config):
    """Low-rank adapters. They are merged into the weights when training ends."""

    rank: PositiveInt = Field(16, description="rank of the adapters")
    alpha: PositiveInt = Field(32, description="scale of the adapters, over the rank")
    dropout: float = Field(0.0, ge=0, lt=1, description="dropout in front of the adapters")
    targets: str | tuple[str, ...] = Field("all-linear", description="layers that get adapters")


class TrainConfig(Config):
    """One supervised fine-tuning run: which rows, which model, how, and where the result goes."""

    out: str = Field(description="run folder; the model goes into its folder model/")
    dataset: str = Field(description="dataset folder, as `gumshoe export` writes it")
    view: str = Field("seeker", description="config of the dataset: seeker or agent")
    train_split: str = Field("train", description="split that is trained on")
    eval_split: str | None = Field(None, description="split for evaluation, never trained on; null: none")
    limit: PositiveInt | None = Field(None, description="maximum number of rows, from the beginning; null: all")

    model: str = Field(description="model to start from: a folder, a hub id, or a .gguf file")
    revision: str | None = Field(None, description="revision of a hub model; null: the newest")
    chat_template: str | None = Field(
        None,
        description="replaces the model's template: hermes, which is bundled, or a file; saved with the model",
    )

    method: Literal["full", "lora", "qlora"] = Field(
        "full", description="train all weights, adapters, or adapters on 4-bit weights (needs bitsandbytes)"
    )
    lora: LoraSection = Field(
        default_factory=lambda: LoraSection.model_validate({}), description="adapters, for method lora"
    )

    max_length: PositiveInt = Field(8192, description="maximum tokens per row")
    too_long: Literal["error", "skip", "windows"] = Field(
        "error", description="rows over max_length: refuse them, skip them, or cut them between turns"
    )
    unit: Literal["episode", "decision"] = Field(
        "episode", description="a row trains a whole episode, or one decision with its full history"
    )
    mask: tuple[Rule, ...] = Field(RULES, description="turns that are masked: malformed calls, repetitions in a loop")
    epochs: PositiveFloat = Field(1.0, description="passes over the rows")
    max_steps: int = Field(-1, ge=-1, description="optimizer steps; -1: determined by epochs")
    batch: PositiveInt = Field(1, description="rows that go through the model at once, on each device")
    accumulate: PositiveInt = Field(1, description="batches of one optimizer step")
    learning_rate: PositiveFloat = Field(1e-5, description="peak learning rate")
    schedule: Literal["linear", "cosine", "constant_with_warmup"] = Field(
        "cosine", description="learning rate schedule"
    )
    warmup: float = Field(0.05, ge=0, lt=1, description="share of the steps in which the learning rate rises")
    weight_decay: float = Field(0.0, ge=0, description="decay of the weight matrices")
    beta2: float = Field(0.999, gt=0, lt=1, description="AdamW's memory of squared gradients")
    clip: PositiveFloat = Field(1.0, description="gradient norm above which gradients are scaled down")
    packing: bool = Field(False, description="pack rows into sequences of max_length; slow on processors")
    by_length: bool = Field(False, description="batch rows of similar length: less padding")
    bf16: bool | Literal["auto"] = Field(
        False, description="compute in bfloat16; auto: where the device has instructions for it"
    )
    gradient_checkpointing: bool = Field(False, description="less memory, a third more time")
    seed: int = Field(0, ge=0, description="seed of the order and of dropout")
    threads: PositiveInt | None = Field(None, description="processor threads; null: torch's default")
    device: Literal["auto", "cpu"] = Field("auto", description="cpu: do not use an accelerator")

    log_every: PositiveInt = Field(10, description="steps between two log entries")
    eval_every: PositiveInt | None = Field(
        None, description="steps between two evaluations; null: at every epoch's end"
    )
    save_every: PositiveInt | None = Field(
        None, description="steps between two checkpoints; null: at every epoch's end"
    )
    keep: PositiveInt = Field(1, description="checkpoints kept")
    best: Literal["last", "eval_loss", "seeker"] = Field(
        "last",
        description="weights to keep: the last, those of the lowest held-out loss, or those of the best live episodes",
    )
    patience: PositiveInt | None = Field(
        None, description="number of evaluations without improvement after which training stops; null: never"
    )
    episodes: LiveSection | None = Field(None, description="live episodes, for best: seeker")
    report_to: tuple[str, ...] = Field((), description="trackers supported by transformers, such as trackio or wandb")

    @model_validator(mode="after")
    def _best_is_measured(self) -> Self:
        if self.best == "last":
            if self.patience is not None:
                raise ValueError("patience needs best: eval_loss or best: seeker, which define what is better")
            return self
        if self.eval_split is None:
            raise ValueError(
                f"best: {self.best} needs an eval_split, because checkpoints are compared at its evaluations"
            )
        if self.eval_every != self.save_every:
            raise ValueError(
                "best needs a checkpoint at every evaluation: set save_every and eval_every to the same value"
            )
        if (self.best == "seeker") != (self.episodes is not None):
            raise ValueError("best: seeker requires a section episodes, and vice versa")
        return self

    @property
    def sampling(self) -> Sampling:
        """How rows become samples."""
        return Sampling(self.max_length, windows=self.too_long == "windows", unit=self.unit, mask=self.mask)

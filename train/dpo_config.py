"""What a run of preference training is made of."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, PositiveFloat, PositiveInt

from gumshoe.config import Config
from gumshoe.train.config import LoraSection

__all__ = ["DpoConfig"]


class DpoConfig(Config):
    """One run of DPO: pairs of decisions, of which the better one is to become more likely than the worse."""

    out: str = Field(description="run folder; the model goes into its folder model/")
    method: Literal["dpo"] = Field("dpo", description="identifies this kind of config")
    dataset: str = Field(description="dataset folder, as `gumshoe export --view preferences` writes it")
    view: str = Field("preferences", description="config of the dataset, with columns prompt, chosen and rejected")
    train_split: str = Field("train", description="split that is trained on")
    eval_split: str | None = Field(None, description="split for evaluation, never trained on; null: none")
    limit: PositiveInt | None = Field(None, description="maximum number of pairs, from the beginning; null: all")
    model: str = Field(
        description="model to start from: a folder, such as one that was fine-tuned, a hub id, or a .gguf file"
    )
    revision: str | None = Field(None, description="revision of a hub model; null: the newest")
    chat_template: str | None = Field(
        None,
        description="replaces the model's template: hermes, which is bundled, or a file; saved with the model",
    )
    adapters: LoraSection | None = Field(None, description="train adapters, merged at the end; null: all weights")
    beta: PositiveFloat = Field(0.1, description="how strongly the model is kept close to the starting model")
    loss: Literal["sigmoid", "ipo", "hinge", "robust"] = Field("sigmoid", description="loss, as TRL names it")
    max_length: PositiveInt = Field(8192, description="maximum tokens of a prompt with one of its decisions")
    too_long: Literal["error", "skip"] = Field("error", description="pairs over max_length: refuse or skip them")
    epochs: PositiveFloat = Field(1.0, description="passes over the pairs")
    max_steps: int = Field(-1, ge=-1, description="optimizer steps; -1: determined by epochs")
    batch: PositiveInt = Field(1, description="pairs that go through the model at once, on each device")
    accumulate: PositiveInt = Field(1, description="batches of one optimizer step")
    learning_rate: PositiveFloat = Field(1e-6, description="peak learning rate")
    schedule: Literal["linear", "cosine", "constant_with_warmup"] = Field(
        "linear", description="learning rate schedule"
    )
    warmup: float = Field(0.1, ge=0, lt=1, description="share of the steps in which the learning rate rises")
    clip: PositiveFloat = Field(1.0, description="gradient norm above which gradients are scaled down")
    bf16: bool | Literal["auto"] = Field(
        False, description="compute in bfloat16; auto: where the device has instructions for it"
    )
    gradient_checkpointing: bool = Field(False, description="less memory, a third more time")
    seed: int = Field(0, ge=0, description="seed of the order")
    threads: PositiveInt | None = Field(None, description="processor threads; null: torch's default")
    device: Literal["auto", "cpu"] = Field("auto", description="cpu: do not use an accelerator")
    log_every: PositiveInt = Field(10, description="steps between two log entries")
    save_every: PositiveInt | None = Field(
        None, description="steps between two checkpoints; null: at every epoch's end"
    )
    keep: PositiveInt = Field(1, description="checkpoints kept")
    report_to: tuple[str, ...] = Field((), description="trackers supported by transformers, such as trackio or wandb")

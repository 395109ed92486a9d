"""What a training run is made of."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from gumshoe.train.live import LiveSection
from gumshoe.train.masked_turns import RULES, Rule
from gumshoe.train.samples import Sampling
from gumshoe.train.trainer_config import LoraSection, RowsConfig

__all__ = ["TrainConfig"]


class TrainConfig(RowsConfig):
    """One supervised fine-tuning run: which rows, which model, how, and where the result goes."""

    view: str = Field("seeker", description="config of the dataset: seeker or agent")
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
    learning_rate: PositiveFloat = Field(1e-5, description="peak learning rate")
    schedule: Literal["linear", "cosine", "constant_with_warmup"] = Field(
        "cosine", description="learning rate schedule"
    )
    warmup: float = Field(0.05, ge=0, lt=1, description="share of the steps in which the learning rate rises")
    weight_decay: float = Field(0.0, ge=0, description="decay of the weight matrices")
    beta2: float = Field(0.999, gt=0, lt=1, description="AdamW's decay rate for squared gradients")
    packing: bool = Field(False, description="pack rows into sequences of max_length; slow on processors")
    by_length: bool = Field(False, description="batch rows of similar length: less padding")

    eval_every: PositiveInt | None = Field(
        None, description="steps between two evaluations; null: at every epoch's end"
    )
    best: Literal["last", "eval_loss", "seeker"] = Field(
        "last",
        description="weights to keep: the last, those of the lowest held-out loss, or those of the best live episodes",
    )
    patience: PositiveInt | None = Field(
        None, description="number of evaluations without improvement after which training stops; null: never"
    )
    episodes: LiveSection | None = Field(None, description="live episodes, for best: seeker")

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

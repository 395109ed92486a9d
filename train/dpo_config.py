"""What a run of preference training is made of."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, PositiveFloat, PositiveInt

from gumshoe.train.trainer_config import LoraSection, RowsConfig

__all__ = ["DpoConfig"]


class DpoConfig(RowsConfig):
    """One run of DPO: pairs of decisions, of which the better one is to become more likely than the worse."""

    method: Literal["dpo"] = Field("dpo", description="identifies this kind of config")
    dataset: str = Field(description="dataset folder, as `gumshoe export --view preferences` writes it")
    view: str = Field("preferences", description="config of the dataset, with columns prompt, chosen and rejected")
    adapters: LoraSection | None = Field(None, description="train adapters, merged at the end; null: all weights")
    beta: PositiveFloat = Field(0.1, description="how strongly the model is kept close to the starting model")
    loss: Literal["sigmoid", "ipo", "hinge", "robust"] = Field("sigmoid", description="loss, as TRL names it")
    max_length: PositiveInt = Field(8192, description="maximum tokens of a prompt with one of its decisions")
    too_long: Literal["error", "skip"] = Field("error", description="pairs over max_length: refuse or skip them")

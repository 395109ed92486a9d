"""What a training run is made of: a config for each method, and what they have in common."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, JsonValue, PositiveFloat, PositiveInt, model_validator

from gumshoe.agreement import WEIGHTS
from gumshoe.config import Config, apply_overrides, load_config, read_yaml
from gumshoe.errors import ConfigError
from gumshoe.plugins import search_beside
from gumshoe.text import unknown_choice
from gumshoe.train.rows.samples import RULES, Rule, Sampling


class LoraSection(Config):
    """Low-rank adapters. They are merged into the weights when training ends."""

    rank: PositiveInt = Field(16, description="rank of the adapters")
    alpha: PositiveInt = Field(32, description="scale of the adapters, over the rank")
    dropout: float = Field(0.0, ge=0, lt=1, description="dropout in front of the adapters")
    targets: str | tuple[str, ...] = Field("all-linear", description="layers that get adapters")


class LiveSection(Config):
    """Where episodes are played while a model trains, and what they are worth."""

    environment: str = Field(
        "gumshoe.eval.live:open_episodes", description="module:function that creates the episodes from the section live"
    )
    live: dict[str, JsonValue] = Field(description="tasks, sandbox and limits, as that function reads them")
    weights: dict[str, float] = Field(default=dict(WEIGHTS), description="weight of each score in the reward")
    max_tokens: PositiveInt = Field(256, description="maximum tokens per turn")


class TrainerConfig(Config):
    """One run: which model, and how a trainer works on it."""

    out: str = Field(description="run folder; the model goes into its folder model/")
    model: str = Field(
        description="model to start from: a folder, such as one that was fine-tuned, a hub ID, or a .gguf file"
    )
    revision: str | None = Field(None, description="revision of a hub model; null: the newest")
    chat_template: str | None = Field(
        None,
        description="replaces the model's template: hermes, llama3 (both bundled), or a file; saved with the model",
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
    limit: PositiveInt | None = Field(None, description="maximum number of rows, the first by their IDs; null: all")
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


class TrainConfig(RowsConfig):
    """One supervised fine-tuning run: which rows, which model, how, and where the result goes."""

    view: str = Field("seeker", description="config of the dataset, such as seeker or agent_decisions")
    method: Literal["full", "lora", "qlora"] = Field(
        "full", description="train all weights, adapters, or adapters on 4-bit weights (needs bitsandbytes)"
    )
    lora: LoraSection = Field(
        default_factory=lambda: LoraSection.model_validate({}), description="adapters, for the methods lora and qlora"
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


class GrpoConfig(TrainerConfig):
    """One run of GRPO on live episodes: which model, which tasks, what a good episode is worth."""

    method: Literal["grpo"] = Field("grpo", description="identifies this kind of config")
    episodes: LiveSection = Field(description="how episodes are run and rewarded")
    group: int = Field(8, ge=2, description="episodes of one task that are compared with each other")
    tasks_a_step: PositiveInt = Field(1, description="tasks of one optimizer step, each with a group of episodes")
    batch: PositiveInt = Field(8, description="episodes that go through the model at once, on each device")
    iterations: PositiveInt = Field(1, description="optimizer steps on the same episodes")
    max_steps: PositiveInt = Field(100, description="optimizer steps")
    max_completion: PositiveInt = Field(4096, description="maximum tokens of an episode after the prompt")
    temperature: PositiveFloat = Field(1.0, description="sampling temperature")
    schedule: Literal["linear", "cosine", "constant"] = Field("constant", description="learning rate schedule")
    scale_rewards: Literal["group", "batch", "none"] = Field(
        "none",
        description="divide rewards by their spread in a group or batch; with groups, a task on which all episodes "
        "score almost the same counts as much as one that separates good from bad",
    )
    beta: float = Field(
        0.0, ge=0, description="weight of the KL divergence from the starting model; 0: no reference model"
    )
    vllm: Literal["off", "colocate", "server"] = Field("off", description="generate turns with vLLM through TRL")
    log_every: PositiveInt = Field(1, description="steps between two log entries")
    save_every: PositiveInt = Field(50, description="steps between two checkpoints")

    @model_validator(mode="after")
    def _whole_groups(self) -> Self:
        if (self.group * self.tasks_a_step) % self.batch:
            raise ValueError(f"batch {self.batch} must divide the {self.group * self.tasks_a_step} episodes of a step")
        return self


AnyConfig = TrainConfig | GrpoConfig | DpoConfig
"""The configs of all methods."""

METHODS: dict[str, type[AnyConfig]] = {
    **dict.fromkeys(("full", "lora", "qlora"), TrainConfig),
    "dpo": DpoConfig,
    "grpo": GrpoConfig,
}


def read_config(path: Path, overrides: Sequence[str]) -> AnyConfig:
    """The config of the kind that its method asks for; modules beside it can be imported. Raises ConfigError."""
    method = str(apply_overrides(read_yaml(path), overrides).get("method", "full"))
    if method not in METHODS:
        raise ConfigError(f"{path}: {unknown_choice('method', method, list(METHODS))}")
    search_beside(path)
    return load_config(METHODS[method], path, overrides)

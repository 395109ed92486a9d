"""What a reinforcement learning run is made of."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from gumshoe.config import Config
from gumshoe.train.live import LiveSection

__all__ = ["GrpoConfig"]


class GrpoConfig(Config):
    """One run of GRPO on live episodes: which model, which tasks, what a good episode is worth."""

    out: str = Field(description="run folder; the model goes into its folder model/")
    method: Literal["grpo"] = Field("grpo", description="identifies this kind of config")
    model: str = Field(
        description="model to start from: a folder, such as one that was fine-tuned, a hub id, or a .gguf file"
    )
    revision: str | None = Field(None, description="revision of a hub model; null: the newest")
    chat_template: str | None = Field(
        None,
        description="replaces the model's template: hermes, which is bundled, or a file; saved with the model",
    )
    episodes: LiveSection = Field(description="how episodes are run and rewarded")
    group: int = Field(8, ge=2, description="episodes of one task that are compared with each other")
    tasks_a_step: PositiveInt = Field(1, description="tasks of one optimizer step, each with a group of episodes")
    batch: PositiveInt = Field(8, description="episodes that go through the model at once, on each device")
    iterations: PositiveInt = Field(1, description="optimizer steps on the same episodes")
    max_steps: PositiveInt = Field(100, description="optimizer steps")
    max_completion: PositiveInt = Field(4096, description="maximum tokens of an episode after the prompt")
    temperature: PositiveFloat = Field(1.0, description="sampling temperature")
    learning_rate: PositiveFloat = Field(1e-6, description="peak learning rate")
    schedule: Literal["linear", "cosine", "constant"] = Field("constant", description="learning rate schedule")
    scale_rewards: Literal["group", "batch", "none"] = Field(
        "none",
        description="divide rewards by their spread in a group or batch; with groups, a task on which all episodes "
        "score almost the same counts as much as one that separates good from bad",
    )
    beta: float = Field(
        0.0, ge=0, description="weight of the KL divergence from the starting model; 0: no reference model"
    )
    clip: PositiveFloat = Field(1.0, description="gradient norm above which gradients are scaled down")
    bf16: bool | Literal["auto"] = Field(
        False, description="compute in bfloat16; auto: where the device has instructions for it"
    )
    gradient_checkpointing: bool = Field(False, description="less memory, a third more time")
    seed: int = Field(0, ge=0, description="seed of the order and of sampling")
    threads: PositiveInt | None = Field(None, description="processor threads; null: torch's default")
    device: Literal["auto", "cpu"] = Field("auto", description="cpu: do not use an accelerator")
    vllm: Literal["off", "colocate", "server"] = Field("off", description="generate turns with vLLM through TRL")
    log_every: PositiveInt = Field(1, description="steps between two log entries")
    save_every: PositiveInt = Field(50, description="steps between two checkpoints")
    keep: PositiveInt = Field(1, description="checkpoints kept")
    report_to: tuple[str, ...] = Field((), description="trackers supported by transformers, such as trackio or wandb")

    @model_validator(mode="after")
    def _whole_groups(self) -> Self:
        if (self.group * self.tasks_a_step) % self.batch:
            raise ValueError(f"batch {self.batch} must divide the {self.group * self.tasks_a_step} episodes of a step")
        return self

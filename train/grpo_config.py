"""What a reinforcement learning run is made of."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from gumshoe.train.live import LiveSection
from gumshoe.train.trainer_config import TrainerConfig

__all__ = ["GrpoConfig"]


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

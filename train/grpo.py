"""Reinforcement learning with GRPO: live episodes in, a model folder out."""

from __future__ import annotations

import os
import time
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gumshoe.errors import ConfigError
from gumshoe.train.arguments import in_bf16, trainer_arguments
from gumshoe.train.card import RewardOutcome, render_reward_card
from gumshoe.train.grpo_config import GrpoConfig
from gumshoe.train.live import Arena
from gumshoe.train.result import TrainResult, is_sharded, put_in_place, torch_threads, write_model
from gumshoe.train.run_folder import TrainingFolder
from gumshoe.train.starting_point import local_model, starting_tokenizer
from gumshoe.train.template import check_tools, training_template

if TYPE_CHECKING:
    from trl.trainer.grpo_config import GRPOConfig

    from gumshoe.train.rollouts import LiveTrainer

__all__ = ["train_grpo"]


def train_grpo(config: GrpoConfig, arena: Arena, *, resume: Path | None = None) -> TrainResult[RewardOutcome]:
    """Runs a config; a stopped run goes on from its newest checkpoint.

    Args:
        config: what to do.
        arena: where episodes are played.
        resume: checkpoint to go on from, instead of the newest.

    Raises:
        ConfigError: the config, the model or the run folder is wrong.
        SandboxError, TaskError: an episode broke.
    """
    if config.vllm != "off" and find_spec("vllm") is None:
        raise ConfigError(
            f"vllm: {config.vllm} needs vLLM in addition to TRL: pip install 'trl[vllm]', or use vllm: off"
        )
    folder = TrainingFolder(config)
    if folder.done:
        return TrainResult(folder.model, folder.log, None)
    with torch_threads(config.threads):
        trainer = _trainer(config, folder, arena)
        began = time.monotonic()
        checkpoint = resume or folder.newest_checkpoint()
        trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
        outcome = _outcome(trainer, time.monotonic() - began)
        _save(config, folder, trainer, outcome)
    return TrainResult(folder.model, folder.log, outcome)


def _trainer(config: GrpoConfig, folder: TrainingFolder, arena: Arena) -> LiveTrainer:
    from datasets import Dataset
    from transformers import PrinterCallback, ProgressCallback

    from gumshoe.train.log import LossLog, ProgressBar
    from gumshoe.train.model import load_weights
    from gumshoe.train.rollouts import LiveTrainer, score_functions

    tokenizer = starting_tokenizer(config)
    if isinstance(tokenizer.chat_template, str):
        check_tools(tokenizer, tokenizer.chat_template)
    model = load_weights(local_model(config.model), config.revision)
    weights = config.episodes.weights
    rows = [{"prompt": arena.opening(task), "task": task} for task in arena.tasks]
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        trainer = LiveTrainer(
            arena=arena,
            template=training_template(tokenizer),
            model=model,
            args=_arguments(config, list(weights.values())),
            reward_funcs=score_functions(list(weights)),
            train_dataset=Dataset.from_list(rows),
            processing_class=tokenizer,
            callbacks=[LossLog(folder.log), ProgressBar()],
        )
    trainer.remove_callback(ProgressCallback)
    trainer.remove_callback(PrinterCallback)
    return trainer


def _arguments(config: GrpoConfig, weights: list[float]) -> GRPOConfig:
    from trl.trainer.grpo_config import GRPOConfig

    episodes = config.group * config.tasks_a_step
    return GRPOConfig(
        **trainer_arguments(config),
        reward_weights=weights,
        num_generations=config.group,
        per_device_train_batch_size=config.batch,
        gradient_accumulation_steps=episodes // config.batch,
        num_iterations=config.iterations,
        max_steps=config.max_steps,
        max_completion_length=config.max_completion,
        generation_kwargs={"max_new_tokens": config.episodes.max_tokens},
        temperature=config.temperature,
        lr_scheduler_type=config.schedule,
        beta=config.beta,
        scale_rewards=config.scale_rewards,
        gradient_checkpointing=config.gradient_checkpointing,
        use_vllm=config.vllm != "off",
        vllm_mode="colocate" if config.vllm == "off" else config.vllm,
        save_steps=config.save_every,
        remove_unused_columns=False,
    )


def _outcome(trainer: LiveTrainer, seconds: float) -> RewardOutcome:
    rewards = [entry["reward"] for entry in trainer.state.log_history if "reward" in entry]
    part = max(1, len(rewards) // 5)
    model: Any = trainer.accelerator.unwrap_model(trainer.model)
    return RewardOutcome(
        parameters=model.num_parameters(),
        steps=trainer.state.global_step,
        first=sum(rewards[:part]) / part if rewards else None,
        last=sum(rewards[-part:]) / part if rewards else None,
        seconds=seconds,
    )


def _save(config: GrpoConfig, folder: TrainingFolder, trainer: LiveTrainer, outcome: RewardOutcome) -> None:
    from gumshoe.train.curve import draw_rewards

    state: Any = trainer.accelerator.get_state_dict(trainer.model) if is_sharded(trainer) else None
    if not trainer.is_world_process_zero():
        return
    draw_rewards(folder.log, folder.path, config.episodes.weights)
    model: Any = trainer.accelerator.unwrap_model(trainer.model)
    with put_in_place(folder.model) as fresh:
        # The tokenizer as it was: TRL may have changed its own.
        tokenizer = starting_tokenizer(config)
        write_model(model, tokenizer, fresh, state=state, bf16=in_bf16(config))
        (fresh / "README.md").write_text(render_reward_card(config, outcome), encoding="utf-8")

"""Preference training with DPO: pairs of decisions in, a model folder out."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gumshoe.train.arguments import in_bf16, lora_arguments, rows_arguments
from gumshoe.train.card import PreferenceOutcome, render_preference_card
from gumshoe.train.data import load_rows, some_rows
from gumshoe.train.dpo_config import DpoConfig
from gumshoe.train.model import check_targets, load_weights, merge_adapters
from gumshoe.train.pairs import Pairs, prepare_pairs
from gumshoe.train.result import TrainResult, is_sharded, put_in_place, torch_threads, write_model
from gumshoe.train.run_folder import TrainingFolder
from gumshoe.train.starting_point import local_model, open_renderer
from gumshoe.train.template import template_to_serve

if TYPE_CHECKING:
    from datasets import Dataset
    from trl.trainer.dpo_config import DPOConfig

    from gumshoe.train.preferences import PreferenceTrainer
    from gumshoe.train.render import Renderer

__all__ = ["load_pairs", "train_dpo"]

_COLUMNS = ("prompt", "chosen", "rejected")


def train_dpo(config: DpoConfig, *, resume: Path | None = None) -> TrainResult[PreferenceOutcome]:
    """Runs a config; a stopped run goes on from its newest checkpoint.

    Args:
        config: what to do.
        resume: checkpoint to go on from, instead of the newest.

    Raises:
        ConfigError: the config, the model or the run folder is wrong.
        DatasetError: the dataset is missing or lacks what is needed, or a pair cannot be trained on.
    """
    arguments = _arguments(config)
    source = load_pairs(config, config.train_split)
    held_out = None if config.eval_split is None else load_pairs(config, config.eval_split)
    folder = TrainingFolder(config)
    if folder.done:
        return TrainResult(folder.model, folder.log, None)
    renderer = open_renderer(config, source)
    pairs = prepare_pairs(source, renderer, config.max_length, config.too_long)
    eval_pairs = None
    if held_out is not None:
        eval_pairs = prepare_pairs(held_out, renderer, config.max_length, config.too_long)
    with torch_threads(config.threads):
        trainer = _trainer(config, arguments, folder, renderer, pairs, eval_pairs)
        began = time.monotonic()
        checkpoint = resume or folder.newest_checkpoint()
        trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
        outcome = _outcome(trainer, pairs, time.monotonic() - began)
        _save(config, folder, trainer, renderer, source, outcome)
    return TrainResult(folder.model, folder.log, outcome)


def load_pairs(config: DpoConfig, split: str) -> Dataset:
    """The pairs of a split; the limit applies only to the split that is trained on. Raises DatasetError."""
    limit = config.limit if split == config.train_split else None
    return load_rows(Path(config.dataset), config.view, split, limit=limit, columns=_COLUMNS)


def _trainer(
    config: DpoConfig,
    arguments: DPOConfig,
    folder: TrainingFolder,
    renderer: Renderer,
    pairs: Pairs,
    eval_pairs: Pairs | None,
) -> PreferenceTrainer:
    from transformers import PrinterCallback, ProgressCallback

    from gumshoe.train.log import LossLog, ProgressBar
    from gumshoe.train.preferences import PreferenceTrainer

    model = load_weights(local_model(config.model), config.revision)
    adapters = None if config.adapters is None else lora_arguments(config.adapters)
    if adapters is not None:
        check_targets(model, adapters)
    trainer = PreferenceTrainer(
        model=model,
        args=arguments,
        train_dataset=pairs.rows,
        eval_dataset=None if eval_pairs is None else eval_pairs.rows,
        processing_class=renderer.tokenizer,
        peft_config=adapters,
        callbacks=[LossLog(folder.log), ProgressBar()],
    )
    trainer.remove_callback(ProgressCallback)
    trainer.remove_callback(PrinterCallback)
    return trainer


def _arguments(config: DpoConfig) -> DPOConfig:
    from trl.trainer.dpo_config import DPOConfig

    return DPOConfig(
        **rows_arguments(config, eval_every=config.save_every),
        beta=config.beta,
        loss_type=[config.loss],
        max_length=config.max_length,
        # The initial weights are then needed only once, and not alongside those that train.
        precompute_ref_log_probs=True,
        gradient_checkpointing=config.gradient_checkpointing,
    )


def _outcome(trainer: PreferenceTrainer, pairs: Pairs, seconds: float) -> PreferenceOutcome:
    history = trainer.state.log_history

    def last(name: str) -> float | None:
        return next((entry[name] for entry in reversed(history) if name in entry), None)

    model: Any = trainer.accelerator.unwrap_model(trainer.model)
    return PreferenceOutcome(
        pairs=len(pairs.rows),
        skipped=pairs.skipped,
        tokens=pairs.tokens,
        trained_tokens=pairs.trained_tokens,
        parameters=model.num_parameters(),
        steps=trainer.state.global_step,
        loss=last("loss"),
        accuracy=last("rewards/accuracies"),
        margin=last("rewards/margins"),
        eval_accuracy=last("eval_rewards/accuracies"),
        seconds=seconds,
    )


def _save(
    config: DpoConfig,
    folder: TrainingFolder,
    trainer: PreferenceTrainer,
    renderer: Renderer,
    source: Dataset,
    outcome: PreferenceOutcome,
) -> None:
    from gumshoe.train.curve import draw_losses

    state: Any = trainer.accelerator.get_state_dict(trainer.model) if is_sharded(trainer) else None
    if not trainer.is_world_process_zero():
        return
    draw_losses(folder.log, folder.path)
    tokenizer = renderer.tokenizer
    chosen = [{**row, "messages": [*row["prompt"], *row["chosen"]]} for row in some_rows(source)]
    tokenizer.chat_template = template_to_serve(tokenizer, renderer.template, chosen)
    model: Any = trainer.accelerator.unwrap_model(trainer.model)
    with put_in_place(folder.model) as fresh:
        if config.adapters is not None:
            model.save_pretrained(str(folder.adapters), **({} if state is None else {"state_dict": state}))
            model, state = merge_adapters(local_model(config.model), folder.adapters, config), None
        write_model(model, tokenizer, fresh, state=state, bf16=in_bf16(config))
        (fresh / "README.md").write_text(render_preference_card(config, outcome), encoding="utf-8")

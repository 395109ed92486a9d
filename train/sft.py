"""Supervised fine-tuning with TRL: rows in, a model folder out."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gumshoe.errors import ConfigError, DatasetError
from gumshoe.train.arguments import in_bf16, lora_arguments, sft_arguments
from gumshoe.train.card import Outcome, render_card
from gumshoe.train.config import TrainConfig
from gumshoe.train.data import load_rows, some_conversations
from gumshoe.train.live import Arena, play
from gumshoe.train.model import check_targets, load_model, merge_adapters
from gumshoe.train.preflight import Preflight, prepare
from gumshoe.train.render import Renderer
from gumshoe.train.result import TrainResult, is_sharded, put_in_place, torch_threads, write_model
from gumshoe.train.run_folder import TrainingFolder
from gumshoe.train.starting_point import local_model, open_renderer
from gumshoe.train.template import template_to_serve
from gumshoe.train.untaught import rows_to_train

if TYPE_CHECKING:
    from datasets import Dataset
    from trl.trainer.sft_config import SFTConfig
    from trl.trainer.sft_trainer import SFTTrainer

__all__ = ["PreparedRows", "TrainResult", "prepare_rows", "train"]


@dataclass(frozen=True)
class PreparedRows:
    """Rows as the trainer gets them, and what was found out about them."""

    rows: Dataset
    report: Preflight
    skipped: int


@dataclass(frozen=True)
class _Ready:
    """All that training begins with."""

    start: str
    renderer: Renderer
    source: Dataset
    rows: PreparedRows
    eval_rows: PreparedRows | None


def train(config: TrainConfig, *, resume: Path | None = None, arena: Arena | None = None) -> TrainResult[Outcome]:
    """Runs a config; a stopped run goes on from its newest checkpoint.

    Args:
        config: what to do.
        resume: checkpoint to go on from, instead of the newest.
        arena: where the seeker's score is measured, for `best: seeker`.

    Raises:
        ConfigError: the config, the model or the run folder is wrong.
        DatasetError: the dataset is missing or lacks what is needed, or rows would be cut or have nothing to train.
    """
    arguments = sft_arguments(config)
    # One of several processes claims the folder and makes what all of them read; the others wait for it.
    with arguments.main_process_first(desc="rows"):
        source = load_rows(Path(config.dataset), config.view, config.train_split, limit=config.limit)
        held_out = _held_out(config)
        folder = TrainingFolder(config)
        if folder.done:
            return TrainResult(folder.model, folder.log, None)
        ready = _prepared(config, folder, source, held_out, fresh=arguments.process_index == 0)
    with torch_threads(config.threads):
        trainer = _trainer(config, arguments, folder, ready, arena)
        began = time.monotonic()
        checkpoint = resume or folder.newest_checkpoint()
        trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
        outcome = _outcome(trainer, ready.rows, time.monotonic() - began)
        _save(config, folder, trainer, ready, outcome)
    return TrainResult(folder.model, folder.log, outcome)


def _held_out(config: TrainConfig) -> Dataset | None:
    return None if config.eval_split is None else load_rows(Path(config.dataset), config.view, config.eval_split)


def _prepared(
    config: TrainConfig, folder: TrainingFolder, source: Dataset, held_out: Dataset | None, *, fresh: bool
) -> _Ready:
    """Model, tokenizer and rows. With `fresh`, the rows go to the shared files; otherwise, to files of this process."""
    start = local_model(config.model)
    renderer = open_renderer(config, source)

    def of(rows: Dataset, name: str) -> PreparedRows:
        return prepare_rows(rows, renderer, config, folder.rows / name)

    # Every process renders for itself: the first into the shared file, any other into a file with a name of its own.
    mark = "" if fresh else f"-{time.monotonic_ns()}"
    eval_rows = None if held_out is None else of(held_out, f"held-out{mark}.arrow")
    return _Ready(start, renderer, source, of(source, f"train{mark}.arrow"), eval_rows)


def prepare_rows(source: Dataset, renderer: Renderer, config: TrainConfig, out: Path) -> PreparedRows:
    """Renders and checks rows, and leaves out what is too long where the config says so. Raises DatasetError."""
    rows, report = prepare(source, renderer, config.sampling, out)
    report.check(config.too_long)
    sound = [row.index for row in report.rows if row.sound]
    return PreparedRows(rows.select(sound), report, len(rows) - len(sound))


def _trainer(
    config: TrainConfig, arguments: SFTConfig, folder: TrainingFolder, ready: _Ready, arena: Arena | None
) -> SFTTrainer:
    """TRL's trainer on rows that are tokens already. Raises DatasetError where it would train on fewer rows."""
    from transformers import EarlyStoppingCallback, PrinterCallback, ProgressCallback

    from gumshoe.train.log import LossLog, ProgressBar
    from gumshoe.train.trainer import Trainer

    rows = ready.rows
    columns = ["input_ids", "labels", "length"]
    model = load_model(ready.start, config)
    adapters = None if config.method == "full" else lora_arguments(config.lora)
    if adapters is not None:
        check_targets(model, adapters)
        adapters.trainable_token_indices = rows_to_train(model, ready.renderer.tokenizer, rows.rows["labels"])
    trainer = Trainer(
        model=model,
        args=arguments,
        train_dataset=rows.rows.select_columns(columns),
        eval_dataset=None if ready.eval_rows is None else ready.eval_rows.rows.select_columns(columns),
        processing_class=ready.renderer.tokenizer,
        peft_config=adapters,
        callbacks=[LossLog(folder.log), ProgressBar()],
    )
    if config.patience is not None:
        trainer.add_callback(EarlyStoppingCallback(early_stopping_patience=config.patience))
    if config.best == "seeker":
        trainer.judge = _judge(config, ready, arena)
    trainer.remove_callback(ProgressCallback)
    trainer.remove_callback(PrinterCallback)
    kept: Any = trainer.train_dataset
    if not config.packing and len(kept) != len(rows.rows):
        raise DatasetError(f"the trainer kept {len(kept)} of {len(rows.rows)} rows: look at `gumshoe preflight`")
    return trainer


def _judge(config: TrainConfig, ready: _Ready, arena: Arena | None) -> Callable[[Any], float]:
    """Measures a model by live episodes: the mean reward over the arena's tasks."""
    from gumshoe.train.generator import GreedyGenerator

    if arena is None or config.episodes is None:
        raise ConfigError("best: seeker needs live episodes: give a section episodes")
    section = config.episodes
    template = template_to_serve(ready.renderer.tokenizer, ready.renderer.template, some_conversations(ready.source))

    def judge(model: Any) -> float:
        generate = GreedyGenerator(model, ready.renderer.tokenizer, template, section.max_tokens)
        rewards = [play(arena.episode(task), generate, section.weights) for task in arena.tasks]
        return sum(rewards) / len(rewards)

    return judge


def _outcome(trainer: SFTTrainer, rows: PreparedRows, seconds: float) -> Outcome:
    kept = [row for row in rows.report.rows if row.sound]
    model: Any = trainer.model
    assert model is not None
    measured = _best_entry(trainer)
    return Outcome(
        rows=len(kept),
        skipped=rows.skipped,
        masked=sum(row.masked for row in kept),
        tokens=sum(row.tokens for row in kept),
        trained_tokens=sum(row.trained for row in kept),
        parameters=model.num_parameters(),
        steps=trainer.state.global_step,
        best_step=trainer.state.best_global_step if trainer.args.load_best_model_at_end else None,
        loss=next((entry["loss"] for entry in reversed(trainer.state.log_history) if "loss" in entry), None),
        eval_loss=measured.get("eval_loss"),
        eval_accuracy=measured.get("eval_mean_token_accuracy"),
        seeker_score=measured.get("eval_seeker_score"),
        seconds=seconds,
    )


def _best_entry(trainer: SFTTrainer) -> dict[str, float]:
    """What was measured on held-out rows with the weights that are kept; empty if nothing was."""
    entries = [entry for entry in trainer.state.log_history if "eval_loss" in entry]
    best = trainer.state.best_global_step if trainer.args.load_best_model_at_end else None
    return next((entry for entry in entries if entry["step"] == best), entries[-1] if entries else {})


def _save(config: TrainConfig, folder: TrainingFolder, trainer: SFTTrainer, ready: _Ready, outcome: Outcome) -> None:
    """Writes the result; model/ appears when it is whole."""
    from gumshoe.train.curve import draw_losses

    state = _gathered(trainer)
    if not trainer.is_world_process_zero():
        return
    draw_losses(folder.log, folder.path)
    tokenizer = ready.renderer.tokenizer
    tokenizer.chat_template = template_to_serve(tokenizer, ready.renderer.template, some_conversations(ready.source))
    model: Any = trainer.accelerator.unwrap_model(trainer.model)
    with put_in_place(folder.model) as fresh:
        if config.method != "full":
            model.save_pretrained(str(folder.adapters), **({} if state is None else {"state_dict": state}))
            model, state = merge_adapters(ready.start, folder.adapters, config), None
        write_model(model, tokenizer, fresh, state=state, bf16=in_bf16(config))
        (fresh / "README.md").write_text(render_card(config, outcome), encoding="utf-8")
    shutil.rmtree(folder.rows, ignore_errors=True)


def _gathered(trainer: SFTTrainer) -> dict[str, Any] | None:
    """All weights, where each process holds a part of them. Every process has to ask for them."""
    if is_sharded(trainer):
        return trainer.accelerator.get_state_dict(trainer.model)
    return None

"""Supervised fine-tuning with TRL: rows in, a model folder out."""

from __future__ import annotations

import shutil
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gumshoe.errors import ConfigError, DatasetError
from gumshoe.train.card import Outcome, render_card
from gumshoe.train.config import TrainConfig
from gumshoe.train.data import conversations, load_rows
from gumshoe.train.model import load_model, load_tokenizer
from gumshoe.train.preflight import Preflight, prepare
from gumshoe.train.rename import RenamingCollator, exchangeable
from gumshoe.train.render import Renderer
from gumshoe.train.run_folder import RunFolder
from gumshoe.train.template import served_template, training_template

if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import PreTrainedTokenizerBase
    from trl.trainer.sft_trainer import SFTTrainer

__all__ = ["Prepared", "TrainResult", "prepare_rows", "train"]


@dataclass(frozen=True)
class TrainResult:
    """Where the model is and what the run came to; `outcome` is None where an earlier start had finished it."""

    model: Path
    log: Path
    outcome: Outcome | None


@dataclass(frozen=True)
class Prepared:
    """Rows as the trainer gets them, and what was found out about them."""

    rows: Dataset
    report: Preflight
    skipped: int


def train(config: TrainConfig, *, resume: Path | None = None) -> TrainResult:
    """Runs a config; a stopped run goes on from its newest checkpoint.

    Args:
        config: what to do.
        resume: checkpoint to go on from, instead of the newest.

    Raises:
        ConfigError: the config, the model or the run folder are wrong.
        DatasetError: the dataset is missing or lacks what is needed, or rows would be cut or have nothing to train.
    """
    source = load_rows(Path(config.dataset), config.view, config.train_split, limit=config.limit)
    held_out = None if config.eval_split is None else load_rows(Path(config.dataset), config.view, config.eval_split)
    folder = RunFolder(config)
    if folder.done:
        return TrainResult(folder.model, folder.log, None)
    with _threads(config.threads):
        start = _starting_point(config, folder, source)
        tokenizer = load_tokenizer(start, config.revision)
        template = training_template(tokenizer)
        renderer = Renderer(tokenizer, template)
        rows = prepare_rows(source, renderer, config)
        eval_rows = None if held_out is None else prepare_rows(held_out, renderer, config)
        trainer = _trainer(config, folder, start, tokenizer, rows, eval_rows)
        began = time.monotonic()
        checkpoint = resume or folder.newest_checkpoint()
        trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
        outcome = _outcome(trainer, rows, time.monotonic() - began)
        tokenizer.chat_template = _template_to_serve(tokenizer, template, source)
        _save(config, folder, trainer, tokenizer, outcome)
    return TrainResult(folder.model, folder.log, outcome)


def prepare_rows(source: Dataset, renderer: Renderer, config: TrainConfig) -> Prepared:
    """Renders and checks rows, and leaves out what is too long where the config says so. Raises DatasetError."""
    rows, report = prepare(source, renderer, config.max_length)
    report.check(config.too_long)
    sound = [row.index for row in report.rows if row.sound]
    return Prepared(rows.select(sound), report, len(rows) - len(sound))


def _starting_point(config: TrainConfig, folder: RunFolder, rows: Dataset) -> str:
    """Folder or hub id of the model that training begins with; made here, once, where it is from nothing."""
    if config.scratch is None:
        assert config.model is not None
        return config.model
    if not folder.start.is_dir():
        from gumshoe.train.scratch import make_scratch

        with _put_in_place(folder.start) as fresh:
            make_scratch(config.scratch, conversations(rows), fresh, seed=config.seed)
    return str(folder.start)


def _trainer(
    config: TrainConfig,
    folder: RunFolder,
    start: str,
    tokenizer: PreTrainedTokenizerBase,
    rows: Prepared,
    eval_rows: Prepared | None,
) -> SFTTrainer:
    """TRL's trainer on rows that are tokens already. Raises DatasetError where it would train on fewer rows."""
    from transformers import PrinterCallback, ProgressCallback

    from gumshoe.train.arguments import lora_arguments, sft_arguments
    from gumshoe.train.log import LossLog, ProgressBar
    from gumshoe.train.trainer import Trainer

    trainer = Trainer(
        model=load_model(start, config),
        args=sft_arguments(config, folder.checkpoints, evaluates=eval_rows is not None),
        train_dataset=rows.rows,
        eval_dataset=None if eval_rows is None else eval_rows.rows,
        processing_class=tokenizer,
        peft_config=lora_arguments(config.lora) if config.method == "lora" else None,
        callbacks=[LossLog(folder.log), ProgressBar()],
    )
    if config.rename:
        words, numbers = exchangeable(tokenizer, rows.rows["input_ids"])
        trainer.train_collator = RenamingCollator(
            trainer.data_collator,
            words=words,
            numbers=numbers,
            share=config.rename,
            seed=config.seed,
            epoch=lambda: int(trainer.state.epoch or 0),
        )
    trainer.remove_callback(ProgressCallback)
    trainer.remove_callback(PrinterCallback)
    ready: Any = trainer.train_dataset
    if not config.packing and len(ready) != len(rows.rows):
        raise DatasetError(f"the trainer kept {len(ready)} of {len(rows.rows)} rows: look at `gumshoe preflight`")
    return trainer


def _outcome(trainer: SFTTrainer, rows: Prepared, seconds: float) -> Outcome:
    history = trainer.state.log_history
    kept = [row for row in rows.report.rows if row.sound]
    assert trainer.model is not None
    return Outcome(
        rows=len(kept),
        skipped=rows.skipped,
        tokens=sum(row.tokens for row in kept),
        trained_tokens=sum(row.trained for row in kept),
        parameters=sum(weight.numel() for weight in trainer.model.parameters()),
        steps=trainer.state.global_step,
        loss=next((entry["loss"] for entry in reversed(history) if "loss" in entry), None),
        eval_loss=next((entry["eval_loss"] for entry in reversed(history) if "eval_loss" in entry), None),
        seconds=seconds,
    )


def _template_to_serve(tokenizer: PreTrainedTokenizerBase, marked: str, rows: Dataset) -> str:
    """The model's own template where it renders as trained, else the trained one without its marks.

    Raises:
        ConfigError: neither does.
    """
    own = tokenizer.chat_template
    for template in (own, served_template(marked), marked):
        if isinstance(template, str) and all(_same(tokenizer, template, marked, row) for row in _some(rows)):
            return template
    raise ConfigError("the chat template does not render the same text without its generation marks")


def _some(rows: Dataset) -> list[Mapping[str, Any]]:
    """A few rows over the whole dataset."""
    picked = rows.select(range(0, len(rows), max(1, len(rows) // 8)))
    return list(conversations(picked))


def _same(tokenizer: PreTrainedTokenizerBase, one: str, other: str, row: Mapping[str, Any]) -> bool:
    """Whether both templates render the conversation alike, whole and up to each point where the model is asked."""
    messages: list[dict[str, str]] = row["messages"]
    cuts = [index for index, message in enumerate(messages) if message["role"] == "assistant"]

    def rendered(template: str, end: int, ask: bool) -> object:
        return tokenizer.apply_chat_template(
            messages[:end],
            tools=row.get("tools") or None,
            chat_template=template,
            add_generation_prompt=ask,
            tokenize=False,
        )

    ends = [(len(messages), False), *((cut, True) for cut in cuts)]
    return all(rendered(one, end, ask) == rendered(other, end, ask) for end, ask in ends)


def _save(
    config: TrainConfig,
    folder: RunFolder,
    trainer: SFTTrainer,
    tokenizer: PreTrainedTokenizerBase,
    outcome: Outcome,
) -> None:
    """Writes the result; model/ appears when it is whole."""
    from gumshoe.train.curve import draw_losses

    draw_losses(folder.log, folder.path)
    if not trainer.is_world_process_zero():
        return
    model: Any = trainer.accelerator.unwrap_model(trainer.model)
    if config.method == "lora":
        model = model.merge_and_unload()
    with _put_in_place(folder.model) as fresh:
        model.save_pretrained(str(fresh))
        tokenizer.save_pretrained(str(fresh))
        (fresh / "README.md").write_text(render_card(config, outcome), encoding="utf-8")


@contextmanager
def _put_in_place(target: Path) -> Generator[Path]:
    """A new folder that becomes `target` when the block ends well."""
    fresh = target.with_name(f".{target.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    try:
        yield fresh
        fresh.replace(target)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


@contextmanager
def _threads(count: int | None) -> Generator[None]:
    import torch

    before = torch.get_num_threads()
    if count is not None:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)

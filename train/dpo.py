"""Preference training with DPO: pairs of decisions in, a model folder out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from datasets import Dataset
from trl.trainer.dpo_config import DPOConfig
from trl.trainer.dpo_trainer import DPOTrainer

from gumshoe.train.config import DpoConfig
from gumshoe.train.model import check_targets, load_weights, local_model, open_renderer, template_to_serve
from gumshoe.train.rows.dataset import load_rows, some_rows
from gumshoe.train.rows.pairs import Pairs, prepare_pairs
from gumshoe.train.rows.render import Renderer
from gumshoe.train.run import (
    RENDERED_AS_TRAINED,
    Outcome,
    Picture,
    TrainingFolder,
    TrainResult,
    fit,
    last_logged,
    render_card,
    save_model,
    torch_threads,
)
from gumshoe.train.trainer import lora_arguments, rows_arguments

__all__ = ["DpoOutcome", "load_pairs", "train_dpo"]

_LOSSES = Picture(
    "loss", "loss of what the assistant writes", [("loss", "training", "-"), ("eval_loss", "held out", "o--")]
)


@dataclass(frozen=True, kw_only=True)
class DpoOutcome(Outcome):
    """The outcome of a run. Anything that was not measured is None.

    `accuracy` is the share of pairs whose better decision has gained more than the worse one, `margin` by how much, in
    nats times beta; both are from the last logged steps.
    """

    pairs: int
    skipped: int
    tokens: int
    trained_tokens: int
    loss: float | None
    accuracy: float | None
    margin: float | None
    eval_accuracy: float | None


def train_dpo(config: DpoConfig, *, resume: Path | None = None) -> TrainResult[DpoOutcome]:
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
        trainer = _trainer(config, arguments, renderer, pairs, eval_pairs)
        outcome = _outcome(trainer, pairs, fit(trainer, folder, resume))
        tokenizer = renderer.tokenizer
        chosen = [{**row, "messages": [*row["prompt"], *row["chosen"]]} for row in some_rows(source)]
        tokenizer.chat_template = template_to_serve(tokenizer, renderer.template, chosen)
        has_adapters = config.adapters is not None
        card = _card(config, outcome)
        save_model(config, folder, trainer, tokenizer, card, _LOSSES, has_adapters=has_adapters)
    return TrainResult(folder.model, folder.log, outcome, _summary(folder, outcome))


def load_pairs(config: DpoConfig, split: str) -> Dataset:
    """The pairs of a split; the limit applies only to the split that is trained on. Raises DatasetError."""
    limit = config.limit if split == config.train_split else None
    return load_rows(Path(config.dataset), config.view, split, limit=limit, columns=("prompt", "chosen", "rejected"))


class _Trainer(DPOTrainer):
    """TRL's trainer on pairs that are tokens already: which of them train is decided where rows are rendered."""

    def _prepare_dataset(self, dataset: Any, *_: Any, **__: Any) -> Any:
        return dataset


def _trainer(
    config: DpoConfig, arguments: DPOConfig, renderer: Renderer, pairs: Pairs, eval_pairs: Pairs | None
) -> DPOTrainer:
    model = load_weights(local_model(config.model), config.revision)
    adapters = None if config.adapters is None else lora_arguments(config.adapters)
    if adapters is not None:
        check_targets(model, adapters)
    return _Trainer(
        model=model,
        args=arguments,
        train_dataset=pairs.rows,
        eval_dataset=None if eval_pairs is None else eval_pairs.rows,
        processing_class=renderer.tokenizer,
        peft_config=adapters,
    )


def _arguments(config: DpoConfig) -> DPOConfig:
    return DPOConfig(
        **rows_arguments(config, eval_every=config.save_every),
        beta=config.beta,
        loss_type=[config.loss],
        max_length=config.max_length,
        # The initial weights are then needed only once, and not alongside those that train.
        precompute_ref_log_probs=True,
        gradient_checkpointing=config.gradient_checkpointing,
    )


def _outcome(trainer: DPOTrainer, pairs: Pairs, seconds: float) -> DpoOutcome:
    model: Any = trainer.accelerator.unwrap_model(trainer.model)
    return DpoOutcome(
        pairs=len(pairs.rows),
        skipped=pairs.skipped,
        tokens=pairs.tokens,
        trained_tokens=pairs.trained_tokens,
        parameters=model.num_parameters(),
        steps=trainer.state.global_step,
        loss=last_logged(trainer, "loss"),
        accuracy=last_logged(trainer, "rewards/accuracies"),
        margin=last_logged(trainer, "rewards/margins"),
        eval_accuracy=last_logged(trainer, "eval_rewards/accuracies"),
        seconds=seconds,
    )


def _summary(folder: TrainingFolder, outcome: DpoOutcome) -> list[str]:
    skipped = f", {outcome.skipped} too long and left out" if outcome.skipped else ""
    loss = "" if outcome.loss is None else f", loss {outcome.loss:.3f}"
    lines = [
        f"{outcome.pairs} pairs{skipped}, {outcome.trained_tokens:,} of {outcome.tokens:,} tokens compared",
        f"{outcome.steps} steps in {outcome.seconds:.0f} s{loss}",
    ]
    if outcome.accuracy is not None:
        lines.append(f"the better decision gained more in {outcome.accuracy:.0%} of the pairs logged last")
    return [*lines, f"model  {folder.model}", f"losses {folder.log}, {folder.path / 'loss.svg'}"]


def _card(config: DpoConfig, outcome: DpoOutcome) -> str:
    """The text of README.md in the model folder."""
    skipped = f" {outcome.skipped} over {config.max_length} tokens were left out." if outcome.skipped else ""
    facts = [
        ("training loss, last logged", outcome.loss),
        ("pairs whose better decision gained more, last logged", outcome.accuracy),
        ("by how much, on average", outcome.margin),
        ("of held-out pairs, whose better decision gained more", outcome.eval_accuracy),
    ]
    paragraphs = [
        f"`{config.model}` went on learning with DPO (beta {config.beta:g}) from {outcome.pairs:,} pairs of "
        f"decisions that were tried in one place of an episode: split `{config.train_split}` of view "
        f"`{config.view}` of the dataset `{config.dataset}`. {outcome.trained_tokens:,} of {outcome.tokens:,} "
        "tokens are compared: what the assistant wrote in the two decisions, never prompts, tools or tool results."
        f"{skipped}",
        RENDERED_AS_TRAINED,
    ]
    return render_card(config, "dpo", "An info-seeking model, trained on preferences", paragraphs, facts, outcome)

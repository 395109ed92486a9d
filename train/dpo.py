"""Preference training with DPO: pairs of decisions in, a model folder out.

A pair is two decisions that were tried in one place; what is compared is what the assistant wrote in them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from datasets import Dataset
from trl.trainer.dpo_config import DPOConfig
from trl.trainer.dpo_trainer import DPOTrainer

from gumshoe.errors import DatasetError
from gumshoe.train.config import DpoConfig
from gumshoe.train.model import check_targets, load_weights, local_model, open_renderer, template_to_serve
from gumshoe.train.rows.dataset import conversations, load_rows, some_rows
from gumshoe.train.rows.render import UNTRAINED, Rendered, Renderer
from gumshoe.train.rows.samples import Sampling, samples
from gumshoe.train.run import (
    RENDERED_AS_TRAINED,
    Facts,
    TrainingFolder,
    TrainResult,
    fit,
    last_logged,
    lora_arguments,
    render_card,
    rows_arguments,
    save_model,
    torch_threads,
)

_MOST_NAMED = 3


@dataclass(frozen=True)
class PreferencePair:
    """A row as the trainer gets it. What is compared is what the assistant wrote: text, calls, and the turn's end."""

    id: str
    prompt: list[int]
    chosen: list[int]
    rejected: list[int]

    @property
    def length(self) -> int:
        """Tokens of the prompt with the longer decision."""
        return len(self.prompt) + max(len(self.chosen), len(self.rejected))

    def sides(self) -> tuple[tuple[str, Rendered], tuple[str, Rendered]]:
        """Both decisions, each after the prompt, by the names of their columns."""
        return ("chosen", self._behind(self.chosen)), ("rejected", self._behind(self.rejected))

    def _behind(self, decision: list[int]) -> Rendered:
        return Rendered([*self.prompt, *decision], [*[UNTRAINED] * len(self.prompt), *decision])


@dataclass(frozen=True)
class Pairs:
    """What is trained, and how many pairs were too long and left out."""

    rows: Dataset
    skipped: int
    tokens: int
    trained_tokens: int


def pair_of(row: Mapping[str, Any], renderer: Renderer) -> PreferencePair:
    """The tokens of a row with `prompt`, `chosen`, `rejected` and perhaps `tools`.

    Raises:
        DatasetError: it cannot be rendered, or its two decisions do not follow the same prompt, or are the same.
    """
    prompt, chosen = _render_decision(row, "chosen", renderer)
    other, rejected = _render_decision(row, "rejected", renderer)
    name = str(row.get("id") or "a row")
    if prompt != other:
        raise DatasetError(f"{name}: the chat template renders the prompt differently before the two decisions")
    if chosen == rejected:
        raise DatasetError(f"{name}: chosen and rejected are the same")
    return PreferencePair(name, prompt, chosen, rejected)


def prepare_pairs(rows: Dataset, renderer: Renderer, max_length: int, too_long: Literal["error", "skip"]) -> Pairs:
    """Renders and checks every pair. Raises DatasetError."""
    pairs = [pair_of(row, renderer) for row in conversations(rows)]
    fitting = fitting_pairs(pairs, max_length, too_long)
    columns = {
        "prompt_ids": [pair.prompt for pair in fitting],
        "chosen_ids": [pair.chosen for pair in fitting],
        "rejected_ids": [pair.rejected for pair in fitting],
    }
    compared = sum(len(pair.chosen) + len(pair.rejected) for pair in fitting)
    read = sum(2 * len(pair.prompt) for pair in fitting)
    return Pairs(Dataset.from_dict(columns), len(pairs) - len(fitting), read + compared, compared)


def fitting_pairs(
    pairs: Sequence[PreferencePair], max_length: int, too_long: Literal["error", "skip"]
) -> list[PreferencePair]:
    """The pairs that are not too long. Raises DatasetError where none is left, or none may be left out."""
    fitting = [pair for pair in pairs if pair.length <= max_length]
    long = [pair for pair in pairs if pair.length > max_length]
    if long and (too_long == "error" or not fitting):
        names = ", ".join(pair.id for pair in long[:_MOST_NAMED])
        raise DatasetError(
            f"{len(long)} of {len(pairs)} pairs have more than max_length {max_length} tokens ({names}): "
            f"set max_length to {max(pair.length for pair in long)} or more, or too_long: skip"
        )
    return fitting


def _render_decision(row: Mapping[str, Any], column: str, renderer: Renderer) -> tuple[list[int], list[int]]:
    """The tokens before what the assistant wrote last, and the tokens of what it wrote."""
    # No turn is masked out: a decision that was a mistake is the one that the other is preferred to.
    completion = {**row, "completion": row[column], "sampled": ()}
    (sample,) = samples(completion, renderer, Sampling(max_length=0, mask=()))
    labels = sample.rendered.labels
    places = [place for place, label in enumerate(labels) if label != UNTRAINED]
    if not places:
        raise DatasetError(f"{row.get('id') or 'a row'}: {column} contains nothing written by an assistant")
    start, end = places[0], places[-1] + 1
    return sample.rendered.input_ids[:start], sample.rendered.input_ids[start:end]


def train_dpo(config: DpoConfig) -> TrainResult:
    """Runs a config; a stopped run goes on from its newest checkpoint.

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
        facts = {**_count(pairs), **fit(trainer, folder), **_measure(trainer)}
        tokenizer = renderer.tokenizer
        chosen = [{**row, "messages": [*row["prompt"], *row["chosen"]]} for row in some_rows(source)]
        tokenizer.chat_template = template_to_serve(tokenizer, renderer.template, chosen)
        has_adapters = config.adapters is not None
        card = _card(config, facts)
        save_model(config, folder, trainer, tokenizer, card, has_adapters=has_adapters)
    return TrainResult(folder.model, folder.log, facts)


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


def _count(pairs: Pairs) -> Facts:
    return {
        "pairs": len(pairs.rows),
        "pairs left out, too long": pairs.skipped,
        "tokens": pairs.tokens,
        "tokens compared": pairs.trained_tokens,
    }


def _measure(trainer: DPOTrainer) -> Facts:
    """From the last logged steps: the margin is in nats times beta."""
    return {
        "loss": last_logged(trainer, "loss"),
        "pairs whose better decision gained more": last_logged(trainer, "rewards/accuracies"),
        "by how much, on average": last_logged(trainer, "rewards/margins"),
        "held-out pairs whose better decision gained more": last_logged(trainer, "eval_rewards/accuracies"),
    }


def _card(config: DpoConfig, facts: Facts) -> str:
    """The text of README.md in the model folder."""
    paragraphs = [
        f"`{config.model}` went on learning with DPO (beta {config.beta:g}) from pairs of decisions that were tried in "
        f"one place of an episode: split `{config.train_split}` of view `{config.view}` of the dataset "
        f"`{config.dataset}`. What the assistant wrote in the two decisions is compared, never prompts, tools or tool "
        "results.",
        RENDERED_AS_TRAINED,
    ]
    return render_card(config, "dpo", "An info-seeking model, trained on preferences", paragraphs, facts)

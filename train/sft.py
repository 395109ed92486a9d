"""Supervised fine-tuning with TRL: rows in, a model folder out."""

from __future__ import annotations

import functools
import inspect
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from peft.utils.other import TrainableTokensWrapper
from torch.nn.functional import cross_entropy, normalize
from transformers import EarlyStoppingCallback, PreTrainedModel, PreTrainedTokenizerBase
from trl.trainer.sft_config import SFTConfig
from trl.trainer.sft_trainer import SFTTrainer

from gumshoe.errors import ConfigError, SandboxError
from gumshoe.train.config import TrainConfig
from gumshoe.train.episodes import EpisodeSource, GeneratedTurn, Request, generate_turn, open_episodes, play
from gumshoe.train.model import check_targets, load_model, local_model, open_renderer, template_to_serve
from gumshoe.train.rows.dataset import load_rows, some_rows
from gumshoe.train.rows.prepare import Preflight, prepare
from gumshoe.train.rows.render import UNTRAINED, Renderer
from gumshoe.train.rows.samples import as_conversation
from gumshoe.train.run import (
    RENDERED_AS_TRAINED,
    Facts,
    TrainingFolder,
    TrainResult,
    fit,
    is_sharded,
    last_logged,
    lora_arguments,
    render_card,
    rows_arguments,
    save_model,
    torch_threads,
)

_METRIC = {"last": None, "eval_loss": "eval_loss", "seeker": "eval_seeker_score"}
_SAME = 0.999
"""Cosine of two rows of an output layer from which they are taken for the same."""
_SLICE = 16384
"""Rows of the output layer that are compared at a time."""


@dataclass(frozen=True)
class PreparedRows:
    """Rows as the trainer gets them, and what was found out about them."""

    rows: Dataset
    report: Preflight
    skipped: int


def train_sft(config: TrainConfig) -> TrainResult:
    """Runs a config; a stopped run goes on from its newest checkpoint.

    Raises:
        ConfigError: the config, the model or the run folder is wrong.
        DatasetError: the dataset is missing or lacks what is needed, or rows would be cut or have nothing to train.
    """
    arguments = _arguments(config)
    episodes = None if config.episodes is None else open_episodes(config.episodes)
    # One of several processes goes first: it claims the folder and fills the cache of `datasets`.
    with arguments.main_process_first(desc="rows"):
        source = load_rows(Path(config.dataset), config.view, config.train_split, limit=config.limit)
        held_out = None
        if config.eval_split is not None:
            held_out = load_rows(Path(config.dataset), config.view, config.eval_split)
        folder = TrainingFolder(config)
        if folder.done:
            return TrainResult(folder.model, folder.log, None)
        renderer = open_renderer(config, source)
        # Each process renders the rows for itself, into files of its own.
        files = folder.rows / str(arguments.process_index)
        rows = prepare_rows(source, renderer, config, files / "train.arrow")
        eval_rows = None
        if held_out is not None:
            eval_rows = prepare_rows(held_out, renderer, config, files / "held-out.arrow")
    with torch_threads(config.threads):
        some = [as_conversation(row) for row in some_rows(source)]
        template = template_to_serve(renderer.tokenizer, renderer.template, some)
        trainer = _trainer(config, arguments, renderer, rows, eval_rows)
        if config.best == "seeker" and episodes is not None:
            trainer.judge = _judge(config, episodes, renderer, template)
        facts = {**_count(rows), **fit(trainer, folder), **_measure(trainer)}
        renderer.tokenizer.chat_template = template
        has_adapters = config.method != "full"
        card = _card(config, facts)
        save_model(config, folder, trainer, renderer.tokenizer, card, has_adapters=has_adapters)
        if trainer.is_world_process_zero():
            shutil.rmtree(folder.rows, ignore_errors=True)
    return TrainResult(folder.model, folder.log, facts)


def prepare_rows(source: Dataset, renderer: Renderer, config: TrainConfig, out: Path) -> PreparedRows:
    """Renders and checks rows, and leaves out what is too long where the config says so. Raises DatasetError."""
    rows, report = prepare(source, renderer, config.sampling, out)
    report.check(config.too_long)
    sound = [row.index for row in report.rows if row.sound]
    return PreparedRows(rows.select(sound), report, len(rows) - len(sound))


def _arguments(config: TrainConfig) -> SFTConfig:
    """The trainer's arguments. Rows come tokenized and checked; at most, the trainer packs them. Raises ConfigError."""
    return SFTConfig(
        **rows_arguments(config, eval_every=config.eval_every),
        # Packing cuts nothing that was checked to fit.
        dataset_kwargs={"skip_prepare_dataset": not config.packing},
        packing=config.packing,
        max_length=config.max_length,
        weight_decay=config.weight_decay,
        adam_beta2=config.beta2,
        ddp_find_unused_parameters=False,
        activation_checkpointing=config.gradient_checkpointing,
        load_best_model_at_end=config.best != "last",
        metric_for_best_model=_METRIC[config.best],
        greater_is_better=config.best == "seeker",
    )


def _trainer(
    config: TrainConfig, arguments: SFTConfig, renderer: Renderer, rows: PreparedRows, eval_rows: PreparedRows | None
) -> SeekerTrainer:
    """TRL's trainer on rows that are tokens already."""
    model = load_model(local_model(config.model), config)
    adapters = None if config.method == "full" else lora_arguments(config.lora)
    if adapters is not None:
        check_targets(model, adapters)
        adapters.trainable_token_indices = _tokens_to_train(model, renderer.tokenizer, rows.rows["labels"])
    trainer = SeekerTrainer(
        model=model,
        args=arguments,
        train_dataset=rows.rows,
        eval_dataset=None if eval_rows is None else eval_rows.rows,
        processing_class=renderer.tokenizer,
        peft_config=adapters,
    )
    if config.patience is not None:
        trainer.add_callback(EarlyStoppingCallback(early_stopping_patience=config.patience))
    return trainer


class SeekerTrainer(SFTTrainer):
    """Measures live episodes at every evaluation, and computes the training loss in less time on a processor."""

    judge: Callable[[Any], float] | None = None
    """Plays live episodes with the model and returns their mean reward; None: no episodes are played."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        model: Any = self.model
        last: Any = model.get_output_embeddings()
        if isinstance(last, TrainableTokensWrapper):
            # TRL reads the weight and the bias of the last layer; PEFT's layer, which stands for it, has the weight.
            layer: Any = last.original_module
            last.register_parameter("bias", layer.bias)

    def compute_loss(
        self,
        model: Any,
        inputs: dict[str, Any],
        return_outputs: bool = False,
        num_items_in_batch: torch.Tensor | int | None = None,
    ) -> Any:
        """The loss as TRL computes it: the mean negative log-likelihood of the trained tokens.

        TRL computes it from tiles of the logits, which saves memory and is quick with Triton. Without Triton it takes
        half of the time of a step (SmolLM2-135M, rows of 2,000 tokens, two cores). So on a processor, the logits of the
        trained tokens are computed at once. TRL's entropy and token accuracy are not logged in that case.
        """
        if self.args.device.type != "cpu" or return_outputs or not model.training or not self._takes_positions:
            return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
        targets = inputs["labels"][:, 1:]
        positions = (targets != UNTRAINED).any(dim=0).nonzero().flatten()
        given = {name: value for name, value in inputs.items() if name != "labels"}
        logits = model(**given, use_cache=False, logits_to_keep=positions).logits
        kept = targets[:, positions].flatten()
        loss = cross_entropy(logits.flatten(0, 1).float(), kept, ignore_index=UNTRAINED, reduction="sum")
        if num_items_in_batch is None:
            return loss / (kept != UNTRAINED).sum().clamp(min=1)
        # The number counts the tokens of all processes, and the gradients of processes are averaged.
        return loss * self.accelerator.num_processes / torch.as_tensor(num_items_in_batch).clamp(min=1)

    @functools.cached_property
    def _takes_positions(self) -> bool:
        """Whether the model can compute the logits of chosen tokens only, and its loss has no other part."""
        model: Any = self.accelerator.unwrap_model(self.model)
        if hasattr(model, "get_base_model"):
            model = model.get_base_model()
        return not self.aux_loss_enabled and "logits_to_keep" in inspect.signature(type(model).forward).parameters

    def evaluation_loop(self, *args: Any, **kwargs: Any) -> Any:
        """The metrics on held-out rows, and the seeker's score, if it is wanted."""
        output: Any = super().evaluation_loop(*args, **kwargs)
        if self.judge is not None:
            prefix = kwargs.get("metric_key_prefix", "eval")
            output.metrics[f"{prefix}_seeker_score"] = self._judged(self.judge)
        return output

    def _judged(self, judge: Callable[[Any], float]) -> float:
        """The first process plays, the others wait for its score. Raises ConfigError if the model is sharded."""
        from accelerate.utils import broadcast_object_list

        if is_sharded(self):
            raise ConfigError("best: seeker needs the whole model on each device: use best: eval_loss with sharding")
        model: Any = self.accelerator.unwrap_model(self.model)
        score: list[Any] = [judge(model) if self.is_world_process_zero() else None]
        return float(broadcast_object_list(score)[0])


def _tokens_to_train(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, labels: Iterable[Sequence[int]]
) -> dict[str, list[int]] | None:
    """The tokens whose weights in the first and the last layer train beside adapters, for PEFT; None: no token's.

    Qwen2.5-Coder-0.5B-Instruct shares the row of `<tool_call>` in its output layer with 3,217 other tokens. Adapters of
    the other layers cannot make the model prefer one of them: after 158 steps it wrote any of the others in its place,
    in 33 of 62 episodes to the end. So the weights of such tokens are trained as well, where they are among the
    `labels` and were added to the tokenizer's vocabulary.
    """
    shared = set(indistinguishable_tokens(model, sorted(tokenizer.added_tokens_decoder)))
    written = sorted({token for row in labels for token in row} & shared) if shared else []
    ends = (model.get_input_embeddings(), model.get_output_embeddings())
    names = [name for name, layer in model.named_modules() if any(layer is end for end in ends)]
    return dict.fromkeys(names, written) if written else None


def indistinguishable_tokens(model: PreTrainedModel, tokens: Sequence[int]) -> list[int]:
    """Those of the tokens whose row in the output layer is that of another token; none if the layer is sharded."""
    last: Any = model.get_output_embeddings()
    if last is None or not len(last.weight) or not tokens:
        return []
    with torch.no_grad():
        rows = normalize(last.weight[list(tokens)].float())
        parts = [(normalize(part.float()) @ rows.T > _SAME).sum(dim=0) for part in last.weight.split(_SLICE)]
        same = torch.stack(parts).sum(dim=0).tolist()
    return [token for token, count in zip(tokens, same, strict=True) if count > 1]


def _judge(config: TrainConfig, episodes: EpisodeSource, renderer: Renderer, template: str) -> Callable[[Any], float]:
    """Measures a model by live episodes: the mean reward over all tasks."""
    section = config.episodes
    assert section is not None

    def judge(model: Any) -> float:
        def write(request: Request) -> GeneratedTurn:
            return generate_turn(model, renderer.tokenizer, template, request, section.max_tokens)

        played = [play(episodes.episode(task), write, section.weights) for task in episodes.tasks]
        rewards = [reward for reward in played if reward is not None]
        if not rewards:
            raise SandboxError("episodes: no episode of the model came to an end")
        return sum(rewards) / len(rewards)

    return judge


def _count(rows: PreparedRows) -> Facts:
    sound = [row for row in rows.report.rows if row.sound]
    return {
        "rows": len(sound),
        "rows left out, too long": rows.skipped,
        "turns masked out, mistakes": sum(row.masked for row in sound),
        "tokens": sum(row.tokens for row in sound),
        "tokens trained": sum(row.trained for row in sound),
    }


def _measure(trainer: SeekerTrainer) -> Facts:
    best_step = trainer.state.best_global_step if trainer.args.load_best_model_at_end else None
    # What was measured on held-out rows with the weights that are kept; empty if nothing was.
    entries = [entry for entry in trainer.state.log_history if "eval_loss" in entry]
    measured = next((entry for entry in entries if entry["step"] == best_step), entries[-1] if entries else {})
    return {
        "loss": last_logged(trainer, "loss"),
        "step kept, the best": best_step,
        "held-out loss": measured.get("eval_loss"),
        "held-out token accuracy": measured.get("eval_mean_token_accuracy"),
        "mean reward of live episodes": measured.get("eval_seeker_score"),
    }


def _card(config: TrainConfig, facts: Facts) -> str:
    """The text of README.md in the model folder."""
    paragraphs = [
        "It looks for the cause of failing tests with tools: it runs the tests, reads code, stops the program and "
        "looks at values, and reports what it found.",
        f"Fine-tuned from `{config.model}` on split `{config.train_split}` of view `{config.view}` of the dataset "
        f"`{config.dataset}`. What the assistant wrote trains, but no prompts, tools or tool results, and no turns "
        "that were mistakes.",
        RENDERED_AS_TRAINED,
    ]
    return render_card(config, "sft", "An info-seeking model", paragraphs, facts)

"""What the methods have in common: the run folder, the trainer's arguments and log, and the model folder at the end.

    TrainingFolder(config)              a new folder, or that of an earlier start of the same config
      rows_arguments, lora_arguments    the config as TRL and peft take it
      fit                               trains from the newest checkpoint to the end; LossLog writes log.jsonl
      save_model                        adapters merged, weights, tokenizer and card

The model folder can be loaded directly by transformers, vLLM and `gumshoe serve`.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import yaml
from accelerate.utils import DistributedType
from peft import LoraConfig
from transformers import PreTrainedTokenizerBase, PrinterCallback, TrainerCallback, TrainerState
from transformers.integrations import integration_utils

from gumshoe import __version__
from gumshoe.config import config_hash, dump_config, load_config
from gumshoe.errors import ConfigError
from gumshoe.standard_streams import StatusLine
from gumshoe.storage import append_line, new_folder, write_atomic, write_jsonl
from gumshoe.train.config import LoraSection, RowsConfig, TrainerConfig
from gumshoe.train.model import in_bf16, local_model, merge_adapters, on_accelerator

RENDERED_AS_TRAINED = "The chat template in this folder renders a conversation as it was trained."

_CHECKPOINTS = "checkpoints"
"""Folder in the run folder, with what the run goes on from."""
_FREE = {"threads", "log_every", "keep", "report_to", "device"}
"""Fields that may change between a run and its continuation: they do not change what is learned."""


Facts = Mapping[str, int | float | None]
"""What there is to tell of a run, in the order in which it is told. What was not measured is None."""


@dataclass(frozen=True)
class TrainResult:
    """Where the model is, and what there is to tell of the run; None if an earlier start had finished it."""

    model: Path
    log: Path
    facts: Facts | None


class TrainingFolder:
    """Opens the folder of a run: a new one, or the one left by an earlier start of the same config.

    config.yaml   the whole config          log.jsonl    losses, one entry a line
    checkpoints/  to go on from             adapters/    where adapters were trained, before they are merged
    rows/         what trains, as tokens, in supervised training; gone when training is done
    model/        the result; it is there when training is done

    Raises:
        ConfigError: the folder holds something else, or a run of another config.
        OSError: it cannot be written.
    """

    def __init__(self, config: TrainerConfig) -> None:
        self.path = Path(config.out)
        self.config_file = self.path / "config.yaml"
        self.log = self.path / "log.jsonl"
        self.checkpoints = self.path / _CHECKPOINTS
        self.rows = self.path / "rows"
        self.adapters = self.path / "adapters"
        self.model = self.path / "model"
        self._claim(config)

    @property
    def done(self) -> bool:
        """Whether the model is there."""
        return self.model.is_dir()

    def newest_checkpoint(self) -> Path | None:
        """The checkpoint to go on from; None where there is none."""
        checkpoints = [
            path for path in self.checkpoints.glob("checkpoint-*") if (path / "trainer_state.json").is_file()
        ]
        return max(checkpoints, key=lambda path: int(path.name.rpartition("-")[2]), default=None)

    def _claim(self, config: TrainerConfig) -> None:
        if self.config_file.is_file():
            self._compare(config)
        elif self.path.is_dir() and any(self.path.iterdir()):
            raise ConfigError(f"out: {self.path} is not a training run: choose another folder")
        self.path.mkdir(parents=True, exist_ok=True)
        write_atomic(self.config_file, dump_config(config))

    def _compare(self, config: TrainerConfig) -> None:
        try:
            earlier = load_config(type(config), self.config_file)
        except ConfigError:
            raise ConfigError(f"out: {self.path} contains a different kind of run: choose another folder") from None
        changed = sorted(
            name
            for name in type(config).model_fields
            if name not in _FREE and getattr(earlier, name) != getattr(config, name)
        )
        # Nothing is learned before the first checkpoint: until then the config may change.
        if changed and (self.done or self.newest_checkpoint()):
            raise ConfigError(
                f"out: {self.path} contains a run with another config ({', '.join(changed)} differ): "
                "choose another folder, or delete that one"
            )


def rows_arguments(config: RowsConfig, *, eval_every: int | None) -> dict[str, Any]:
    """What every trainer is told that goes over rows in epochs. Raises ConfigError."""
    return trainer_arguments(config) | {
        "num_train_epochs": config.epochs,
        "max_steps": config.max_steps,
        "per_device_train_batch_size": config.batch,
        "per_device_eval_batch_size": config.batch,
        "gradient_accumulation_steps": config.accumulate,
        "lr_scheduler_type": config.schedule,
        "warmup_steps": config.warmup,
        "logging_first_step": True,
        "eval_strategy": _when(eval_every) if config.eval_split is not None else "no",
        "eval_steps": eval_every,
        "save_strategy": _when(config.save_every),
        "save_steps": config.save_every or 500,
    }


def trainer_arguments(config: TrainerConfig) -> dict[str, Any]:
    """What every trainer is told. Raises ConfigError: a tracker is not known or not installed."""
    return {
        "output_dir": str(Path(config.out) / _CHECKPOINTS),
        "learning_rate": config.learning_rate,
        "max_grad_norm": config.clip,
        "bf16": in_bf16(config),
        "seed": config.seed,
        "data_seed": config.seed,
        "use_cpu": not on_accelerator(config),
        "dataloader_pin_memory": on_accelerator(config),
        "logging_steps": config.log_every,
        "save_total_limit": config.keep,
        "report_to": trackers(config.report_to),
        "disable_tqdm": True,
    }


def lora_arguments(config: LoraSection) -> LoraConfig:
    """The adapters."""
    return LoraConfig(
        r=config.rank,
        lora_alpha=config.alpha,
        lora_dropout=config.dropout,
        target_modules=config.targets if isinstance(config.targets, str) else list(config.targets),
        task_type="CAUSAL_LM",
    )


def trackers(names: Sequence[str]) -> list[str]:
    """The trackers to report to, each of them known to transformers and installed. Raises ConfigError."""
    known = sorted(integration_utils.INTEGRATION_TO_CALLBACK)
    for name in names:
        if name not in known:
            raise ConfigError(f"report_to: {name!r} is not a tracker known to transformers: {', '.join(known)}")
        # For this one, transformers does not say whether it is installed.
        if name != "flyte" and name not in integration_utils.get_available_reporting_integrations():
            raise ConfigError(f"report_to: {name} is not installed here: pip install it, or leave it out")
    return list(names)


def _when(every: int | None) -> str:
    return "epoch" if every is None else "steps"


class LossLog(TrainerCallback):
    """Writes what the trainer logs (loss, eval_loss, learning_rate, ...) to a file of JSON lines.

    The loss and the time that is left are printed, on a terminal on one line. A resumed run begins with what its
    checkpoint has logged, so that no step is duplicated.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._status = StatusLine(sys.stderr)
        self._began, self._first = 0.0, 0

    def on_train_begin(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """Starts the file anew."""
        if state.is_world_process_zero:
            write_jsonl(self._path, state.log_history)

    def on_step_end(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """Begins to measure the speed after the first step, which may take many times as long as the others."""
        if not self._first:
            self._began, self._first = time.monotonic(), state.global_step

    def on_log(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """Appends the newest entry."""
        if not state.is_world_process_zero:
            return
        entry = state.log_history[-1]
        with self._path.open("ab") as file:
            append_line(file, json.dumps(entry), sync=False)
        measures = [f"{name} {entry[name]:.3f}" for name in ("reward", "loss", "eval_loss") if name in entry]
        if measures:
            to_do = state.max_steps - state.global_step
            if to_do and (done := state.global_step - self._first):
                left = (time.monotonic() - self._began) / done * to_do
                measures += [f"{left / 60:.0f} min left" if left >= 90 else f"{left:.0f} s left"]
            self._status.show(f"step {state.global_step} of {state.max_steps}: {', '.join(measures)}")
            if not to_do:
                self._status.keep()


def fit(trainer: Any, folder: TrainingFolder) -> Facts:
    """Trains from the newest checkpoint, if there is one, to the end, and returns what there is to tell."""
    trainer.remove_callback(PrinterCallback)
    trainer.add_callback(LossLog(folder.log))
    began = time.monotonic()
    checkpoint = folder.newest_checkpoint()
    trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
    model: Any = trainer.accelerator.unwrap_model(trainer.model)
    seconds = round(time.monotonic() - began)
    return {"parameters": model.num_parameters(), "steps": trainer.state.global_step, "seconds": seconds}


def last_logged(trainer: Any, name: str) -> float | None:
    """The newest value of a measure in the trainer's log; None if it was never logged."""
    return next((entry[name] for entry in reversed(trainer.state.log_history) if name in entry), None)


def save_model(
    config: TrainerConfig,
    folder: TrainingFolder,
    trainer: Any,
    tokenizer: PreTrainedTokenizerBase,
    card: str,
    *,
    has_adapters: bool = False,
) -> None:
    """Writes the result; model/ appears when it is whole. Every process has to call this, one of them writes.

    The tokenizer has the template that is served; the card is the text of README.md. Adapters are written apart and
    merged into the weights.
    """
    # Where each process holds only a part of the weights, all of them have to help to put the whole together.
    state = trainer.accelerator.get_state_dict(trainer.model) if is_sharded(trainer) else None
    if not trainer.is_world_process_zero():
        return
    model: Any = trainer.accelerator.unwrap_model(trainer.model)
    with new_folder(folder.model) as fresh:
        if has_adapters:
            model.save_pretrained(str(folder.adapters), state_dict=state)
            model, state = merge_adapters(local_model(config.model), folder.adapters, config), None
        if in_bf16(config):  # The weights are stored as they were computed with.
            model.to(torch.bfloat16)
            state = None if state is None else {name: value.to(torch.bfloat16) for name, value in state.items()}
        _end_turns(model, tokenizer)
        model.save_pretrained(str(fresh), state_dict=state)
        model.generation_config.save_pretrained(str(fresh))
        tokenizer.save_pretrained(str(fresh))
        (fresh / "README.md").write_text(card, encoding="utf-8")


def is_sharded(trainer: Any) -> bool:
    """Whether each process holds only a part of the weights (FSDP, ZeRO-3)."""
    return trainer.accelerator.distributed_type in {DistributedType.FSDP, DistributedType.DEEPSPEED}


def _end_turns(model: Any, tokenizer: PreTrainedTokenizerBase) -> None:
    """Makes generation stop at the token that ends a turn, in addition to where it stopped before."""
    known = model.generation_config.eos_token_id
    ends: list[int] = [] if known is None else list(known) if isinstance(known, list) else [known]
    if tokenizer.eos_token_id not in ends:
        model.generation_config.eos_token_id = [tokenizer.eos_token_id, *ends]
    if model.generation_config.pad_token_id is None:
        model.generation_config.pad_token_id = tokenizer.pad_token_id


def render_facts(facts: Facts) -> list[tuple[str, str]]:
    """The facts that were measured, as text: (name, value)."""
    known = [(name, value) for name, value in facts.items() if value is not None]
    return [(name, f"{value:,}" if isinstance(value, int) else f"{value:.4f}") for name, value in known]


def render_card(config: TrainerConfig, method: str, title: str, paragraphs: Iterable[str], facts: Facts) -> str:
    """The model card, with its YAML header: what the model was made from and how, so that anyone can repeat it."""
    header = {
        "library_name": "transformers",
        "pipeline_tag": "text-generation",
        "tags": ["gumshoe", "seeker", method, "trl"],
        "base_model": config.model,
    }
    rows = [("config hash", f"`{config_hash(config)}`"), *render_facts(facts)]
    return "\n".join(
        [
            f"---\n{yaml.safe_dump(header, sort_keys=False)}---\n",
            f"# {title}\n",
            *(f"{paragraph}\n" for paragraph in paragraphs),
            "| | |\n|---|---|\n" + "\n".join(f"| {name} | {value} |" for name, value in rows) + "\n",
            f"Made with gumshoe {__version__} from this config:\n",
            f"```yaml\n{dump_config(config)}```\n",
        ]
    )


@contextmanager
def torch_threads(count: int | None) -> Generator[None]:
    """Uses `count` threads inside the block; None: as many as there were."""
    before = torch.get_num_threads()
    if count is not None:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)

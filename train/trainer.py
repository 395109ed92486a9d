"""What every trainer is given: its arguments, as TRL and peft take them, and callbacks that log and show progress."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from peft import LoraConfig
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from transformers.integrations import integration_utils

from gumshoe.console import Console
from gumshoe.errors import ConfigError
from gumshoe.storage import append_line, write_jsonl
from gumshoe.train.config import CHECKPOINTS, LoraSection, RowsConfig, TrainerConfig
from gumshoe.train.model import in_bf16, on_accelerator

__all__ = ["LossLog", "ProgressBar", "lora_arguments", "rows_arguments", "trackers", "trainer_arguments"]

PLAIN_EVERY = 10
"""Lines of progress that a run prints where there is no terminal."""


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
        "output_dir": str(Path(config.out) / CHECKPOINTS),
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
    """One JSON object per line: step, epoch and what the trainer reports there (loss, eval_loss, learning_rate, ...).

    A resumed run begins with what its checkpoint has logged, so that no step is duplicated.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Starts the file anew."""
        if not state.is_world_process_zero:
            return
        write_jsonl(self._path, state.log_history)

    def on_log(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Appends the newest entry."""
        if state.is_world_process_zero:
            with self._path.open("ab") as file:
                append_line(file, json.dumps(state.log_history[-1]), sync=False)


class ProgressBar(TrainerCallback):
    """Steps, loss and time left: a bar on a terminal, some lines elsewhere."""

    def __init__(self) -> None:
        self._console = Console(file=sys.stderr)
        self._live = self._console.is_terminal
        self._bar = Progress(
            TextColumn("training"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[loss]}"),
            TimeRemainingColumn(),
            console=self._console,
            disable=not self._live,
        )
        self._task = self._bar.add_task("training", loss="")
        self._loss = ""
        self._shown = True

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Shows the bar, once for all processes."""
        self._shown = state.is_world_process_zero
        if not self._shown:
            return
        self._bar.update(self._task, total=state.max_steps, completed=state.global_step)
        self._bar.start()

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Moves the bar."""
        self._bar.update(self._task, completed=state.global_step)
        if self._shown and not self._live and state.global_step % max(1, state.max_steps // PLAIN_EVERY) == 0:
            print(f"step {state.global_step} of {state.max_steps} {self._loss}".rstrip(), file=sys.stderr, flush=True)

    def on_log(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Shows the newest loss."""
        self._loss = newest_loss(state.log_history) or self._loss
        self._bar.update(self._task, loss=self._loss)

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Takes the bar away."""
        self._bar.stop()


def newest_loss(history: Sequence[dict[str, float]]) -> str:
    """The last training loss or reward, for display; empty where none was logged yet."""
    entry = next((entry for entry in reversed(history) if "loss" in entry), None)
    if entry is None:
        return ""
    return f"reward {entry['reward']:.3f}" if "reward" in entry else f"loss {entry['loss']:.3f}"

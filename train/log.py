"""The output of a training run: the loss log, and the display on the terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from gumshoe.console import Console
from gumshoe.storage import append_line, write_jsonl

__all__ = ["LossLog", "ProgressBar"]

PLAIN_EVERY = 10
"""Lines of progress that a run prints where there is no terminal."""


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

"""`gumshoe train`: fine-tune a model on a dataset."""

from __future__ import annotations

import argparse
import logging
import os
import warnings
from pathlib import Path

from gumshoe.config import load_config
from gumshoe.errors import ConfigError
from gumshoe.train.config import TrainConfig

__all__ = ["configure", "run"]

EPILOG = """\
examples:
  gumshoe train configs/train/tiny.yaml
  gumshoe train configs/train/tiny.yaml -p dataset=datasets/demo -p out=runs/train/mine -p epochs=4
  gumshoe train RUN/config.yaml              goes on where a stopped run was
  gumshoe train RUN/config.yaml --resume RUN/checkpoints/checkpoint-40

Only what the assistant wrote is trained; `gumshoe preflight` shows it. The model lies in OUT/model.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.epilog = EPILOG
    parser.add_argument("config", type=Path, help="YAML file (see configs/train)")
    parser.add_argument("-p", "--param", action="append", default=[], metavar="KEY=VALUE", help="override a value")
    parser.add_argument("--resume", type=Path, metavar="CHECKPOINT", help="go on from it (default: the newest, if any)")
    parser.add_argument("-v", "--verbose", action="store_true", help="show what the libraries say")


def run(arguments: argparse.Namespace) -> int:
    """Trains and prints where everything is."""
    config = load_config(TrainConfig, arguments.config, arguments.param)
    resume: Path | None = arguments.resume
    if resume is not None and not (resume / "trainer_state.json").is_file():
        raise ConfigError(f"--resume: {resume} is no checkpoint: look into {config.out}/checkpoints")
    if not arguments.verbose:
        quieten()
    from gumshoe.train.sft import train

    result = train(config, resume=resume)
    if result.outcome is None:
        print(f"{result.model} is trained already: give another out, or delete {config.out}")
        return 0
    outcome = result.outcome
    loss = "" if outcome.loss is None else f", loss {outcome.loss:.3f}"
    held_out = "" if outcome.eval_loss is None else f" ({outcome.eval_loss:.3f} on {config.eval_split})"
    skipped = f", {outcome.skipped} too long and left out" if outcome.skipped else ""
    print(f"{outcome.rows} rows{skipped}, {outcome.trained_tokens:,} of {outcome.tokens:,} tokens trained")
    print(f"{outcome.steps} steps in {outcome.seconds:.0f} s{loss}{held_out}")
    print(f"model  {result.model}\nlosses {result.log}, {Path(config.out) / 'loss.svg'}")
    return 0


def quieten() -> None:
    """Keeps the bars and hints of the libraries off the terminal; errors stay."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    import datasets
    from transformers.utils import logging as transformers_logging

    datasets.disable_progress_bars()
    transformers_logging.disable_progress_bar()
    # What the libraries say to each other about their next versions is nothing that a user could mend.
    warnings.filterwarnings("ignore", category=FutureWarning, module=r"(peft|transformers|trl)\b")
    logging.getLogger("trl").setLevel(logging.ERROR)
    logging.getLogger("transformers").setLevel(logging.ERROR)

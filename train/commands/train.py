"""`gumshoe train`: fine-tune a model on a dataset, or on its own episodes."""

from __future__ import annotations

import argparse
import logging
import os
import subprocess
import sys
import warnings
from pathlib import Path

from gumshoe.config import find_config, read_yaml
from gumshoe.errors import ConfigError
from gumshoe.train.commands.methods import AnyConfig, read_config
from gumshoe.train.config import TrainConfig
from gumshoe.train.dpo_config import DpoConfig
from gumshoe.train.grpo_config import GrpoConfig
from gumshoe.train.run_folder import TrainingFolder

__all__ = ["configure", "quieten", "run"]

EPILOG = """\
examples:
  gumshoe train configs/train/smollm2.yaml
  gumshoe train configs/train/smollm2.yaml -p dataset=datasets/demo -p out=runs/train/mine -p epochs=4
  gumshoe train configs/train/qwen3-30b-a3b.yaml --accelerate configs/accelerate/fsdp2.yaml --processes 8
  gumshoe train configs/train/grpo.yaml --method grpo
  gumshoe train configs/train/dpo.yaml -p dataset=datasets/trees

Run the same command again to resume from the newest checkpoint. The result is in OUT/model.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.epilog = EPILOG
    parser.add_argument("config", type=Path, help="YAML file (see configs/train)")
    parser.add_argument("-p", "--param", action="append", default=[], metavar="KEY=VALUE", help="override a value")
    parser.add_argument("--method", help="full, lora, qlora, dpo or grpo (default: as the config says)")
    parser.add_argument(
        "--resume", type=Path, metavar="CHECKPOINT", help="checkpoint to resume from (default: the newest, if any)"
    )
    parser.add_argument(
        "--accelerate", type=Path, metavar="FILE", help="start several processes with this accelerate config"
    )
    parser.add_argument("--processes", type=int, help="with --accelerate: number of processes (default: as FILE says)")
    parser.add_argument("-v", "--verbose", action="store_true", help="show the log output of the libraries")


def run(arguments: argparse.Namespace) -> int:
    """Trains and prints where everything is."""
    overrides = [*arguments.param, *([f"method={arguments.method}"] if arguments.method else [])]
    config = read_config(arguments.config, overrides)
    resume: Path | None = arguments.resume
    if resume is not None and not (resume / "trainer_state.json").is_file():
        raise ConfigError(f"--resume: {resume} is not a checkpoint: see {config.out}/checkpoints")
    if arguments.accelerate is not None:
        return _launch(arguments, config)
    if not arguments.verbose:
        quieten()
    if isinstance(config, GrpoConfig):
        return _reinforce(config, resume)
    if isinstance(config, DpoConfig):
        return _prefer(config, resume)
    return _fine_tune(config, resume)


def _fine_tune(config: TrainConfig, resume: Path | None) -> int:
    from gumshoe.train.live import open_arena
    from gumshoe.train.sft import train

    arena = None if config.episodes is None else open_arena(config.episodes)
    result = train(config, resume=resume, arena=arena)
    outcome = result.outcome
    if outcome is None:
        return _done_already(result.model, config.out)
    if not _is_main_process():
        return 0
    loss = "" if outcome.loss is None else f", loss {outcome.loss:.3f}"
    held_out = "" if outcome.eval_loss is None else f" ({outcome.eval_loss:.3f} on {config.eval_split})"
    skipped = f", {outcome.skipped} too long and left out" if outcome.skipped else ""
    print(f"{outcome.rows} rows{skipped}, {outcome.trained_tokens:,} of {outcome.tokens:,} tokens trained")
    print(f"{outcome.steps} steps in {outcome.seconds:.0f} s{loss}{held_out}")
    if outcome.best_step is not None:
        print(f"kept step {outcome.best_step}, the best by {config.best}")
    print(f"model  {result.model}\nlosses {result.log}, {Path(config.out) / 'loss.svg'}")
    return 0


def _reinforce(config: GrpoConfig, resume: Path | None) -> int:
    from gumshoe.train.grpo import train_grpo
    from gumshoe.train.live import open_arena

    result = train_grpo(config, open_arena(config.episodes), resume=resume)
    outcome = result.outcome
    if outcome is None:
        return _done_already(result.model, config.out)
    if not _is_main_process():
        return 0
    print(f"{outcome.steps} steps in {outcome.seconds:.0f} s")
    if outcome.first is not None and outcome.last is not None:
        print(f"mean reward {outcome.first:.3f} in the first fifth of them, {outcome.last:.3f} in the last")
    print(f"model   {result.model}\nrewards {result.log}, {Path(config.out) / 'reward.svg'}")
    return 0


def _prefer(config: DpoConfig, resume: Path | None) -> int:
    from gumshoe.train.dpo import train_dpo

    result = train_dpo(config, resume=resume)
    outcome = result.outcome
    if outcome is None:
        return _done_already(result.model, config.out)
    if not _is_main_process():
        return 0
    skipped = f", {outcome.skipped} too long and left out" if outcome.skipped else ""
    loss = "" if outcome.loss is None else f", loss {outcome.loss:.3f}"
    print(f"{outcome.pairs} pairs{skipped}, {outcome.trained_tokens:,} of {outcome.tokens:,} tokens compared")
    print(f"{outcome.steps} steps in {outcome.seconds:.0f} s{loss}")
    if outcome.accuracy is not None:
        print(f"the better decision gained more in {outcome.accuracy:.0%} of the pairs logged last")
    print(f"model  {result.model}\nlosses {result.log}, {Path(config.out) / 'loss.svg'}")
    return 0


def _done_already(model: Path, out: str) -> int:
    if _is_main_process():
        print(f"{model} has already been trained: choose another out, or delete {out}")
    return 0


def _is_main_process() -> bool:
    """Whether this is the only process, or the first of several: the one that prints."""
    return os.environ.get("RANK", "0") == "0"


def _launch(arguments: argparse.Namespace, config: AnyConfig) -> int:
    """Starts this command again in several processes. Errors found early are reported once, before they start."""
    accelerate = find_config(arguments.accelerate)
    if not accelerate.is_file():
        raise ConfigError(f"--accelerate: there is no file {arguments.accelerate}: see configs/accelerate")
    if "distributed_type" not in read_yaml(accelerate):
        raise ConfigError(f"--accelerate: {arguments.accelerate} has no distributed_type: see configs/accelerate")
    if arguments.processes is not None and arguments.processes < 1:
        raise ConfigError(f"--processes {arguments.processes}: give 1 or more")
    if isinstance(config, TrainConfig):
        from gumshoe.train.data import load_rows

        load_rows(Path(config.dataset), config.view, config.train_split, limit=config.limit)
    folder = TrainingFolder(config)
    if folder.done:
        return _done_already(folder.model, config.out)
    command = [sys.executable, "-m", "accelerate.commands.launch", "--config_file", str(accelerate)]
    if arguments.processes is not None:
        command += ["--num_processes", str(arguments.processes)]
    command += ["-m", "gumshoe", "train", str(arguments.config)]
    for override in arguments.param:
        command += ["-p", override]
    for flag in ("method", "resume"):
        value = getattr(arguments, flag)
        command += [f"--{flag}", str(value)] if value is not None else []
    return subprocess.run([*command, *(["--verbose"] if arguments.verbose else [])], check=False).returncode


def quieten() -> None:
    """Keeps the bars and hints of the libraries off the terminal; errors stay."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    import datasets
    from transformers.utils import logging as transformers_logging

    datasets.disable_progress_bars()
    transformers_logging.disable_progress_bar()
    # Users can do nothing about what the libraries tell each other about their next versions.
    warnings.filterwarnings("ignore", category=FutureWarning, module=r"(peft|transformers|trl)\b")
    logging.getLogger("trl").setLevel(logging.ERROR)
    logging.getLogger("transformers").setLevel(logging.ERROR)

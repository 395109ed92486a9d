"""`gumshoe train`: fine-tune a model on a dataset, or on its own episodes."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gumshoe.config import find_config, read_yaml
from gumshoe.errors import ConfigError
from gumshoe.train.config import AnyConfig, DpoConfig, GrpoConfig, TrainConfig, read_config
from gumshoe.train.model import quieten

if TYPE_CHECKING:
    from gumshoe.train.run import TrainResult

__all__ = ["configure", "run"]

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
    result = _train(config, resume)
    if result.outcome is None:
        return _done_already(result.model, config.out)
    if _is_main_process():
        print("\n".join(result.summary))
    return 0


def _train(config: AnyConfig, resume: Path | None) -> TrainResult[Any]:
    """Imports just the method that is asked for, which takes seconds."""
    match config:
        case TrainConfig():
            from gumshoe.train.sft import train

            return train(config, resume=resume)
        case DpoConfig():
            from gumshoe.train.dpo import train_dpo

            return train_dpo(config, resume=resume)
        case GrpoConfig():
            from gumshoe.train.rl import train_grpo

            return train_grpo(config, resume=resume)


def _done_already(model: Path, out: str) -> int:
    if _is_main_process():
        print(f"{model} has already been trained: choose another out, or delete {out}")
    return 0


def _is_main_process() -> bool:
    """Whether this is the only process, or the first of several: the one that prints."""
    return os.environ.get("RANK", "0") == "0"


def _launch(arguments: argparse.Namespace, config: AnyConfig) -> int:
    """Starts this command again in several processes. Errors found early are reported once, before they start."""
    from gumshoe.train.rows.dataset import load_rows
    from gumshoe.train.run import TrainingFolder

    accelerate = find_config(arguments.accelerate)
    if not accelerate.is_file():
        raise ConfigError(f"--accelerate: there is no file {arguments.accelerate}: see configs/accelerate")
    if "distributed_type" not in read_yaml(accelerate):
        raise ConfigError(f"--accelerate: {arguments.accelerate} has no distributed_type: see configs/accelerate")
    if arguments.processes is not None and arguments.processes < 1:
        raise ConfigError(f"--processes {arguments.processes}: give 1 or more")
    if isinstance(config, TrainConfig):
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

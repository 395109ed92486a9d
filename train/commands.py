"""`gumshoe train`, `gumshoe preflight` and `gumshoe unpack`: fine-tune a model, look at what would train, and make the
folder of a model to start from.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from statistics import median_high
from typing import TYPE_CHECKING

from rich.table import Table

from gumshoe.console import Console
from gumshoe.errors import ConfigError
from gumshoe.storage import check_model_files, new_folder
from gumshoe.train.config import AnyConfig, DpoConfig, GrpoConfig, TrainConfig, read_config
from gumshoe.train.masks import mask_text
from gumshoe.train.model import check_tools, load_tokenizer, local_model, open_renderer, quieten, read_template
from gumshoe.train.rows.dataset import conversations, load_rows
from gumshoe.train.rows.prepare import Preflight, RowReport, reported
from gumshoe.train.rows.render import Rendered

if TYPE_CHECKING:
    from gumshoe.train.run import TrainResult


TRAIN_EXAMPLES = """\
examples:
  gumshoe train configs/train/smollm2.yaml
  gumshoe train configs/train/smollm2.yaml -p dataset=datasets/demo -p out=runs/train/mine -p epochs=4
  gumshoe train configs/train/grpo.yaml --method grpo
  gumshoe train configs/train/dpo.yaml -p dataset=datasets/trees
  accelerate launch --config_file configs/accelerate/fsdp2.yaml --num_processes 8 \\
    -m gumshoe train configs/train/qwen3-30b-a3b.yaml

Run the same command again to resume from the newest checkpoint. The result is in OUT/model.
"""


def configure_train(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.epilog = TRAIN_EXAMPLES
    parser.add_argument("config", type=Path, help="YAML file (see configs/train)")
    parser.add_argument("-p", "--param", action="append", default=[], metavar="KEY=VALUE", help="override a value")
    parser.add_argument("--method", help="full, lora, qlora, dpo or grpo (default: as the config says)")
    parser.add_argument("-v", "--verbose", action="store_true", help="show the log output of the libraries")


def run_train(arguments: argparse.Namespace) -> int:
    """Trains and prints where everything is."""
    overrides = [*arguments.param, *([f"method={arguments.method}"] if arguments.method else [])]
    config = read_config(arguments.config, overrides)
    if not arguments.verbose:
        quieten()
    from gumshoe.train.run import render_facts

    result = _train(config)
    if os.environ.get("RANK", "0") != "0":  # One of several processes, of which the first one prints.
        return 0
    if result.facts is None:
        print(f"{result.model} has already been trained: choose another out, or delete {config.out}")
        return 0
    for name, value in [*render_facts(result.facts), ("model", result.model), ("log", result.log)]:
        print(f"{name}: {value}")
    return 0


def _train(config: AnyConfig) -> TrainResult:
    """Imports just the method that is asked for, which takes seconds."""
    match config:
        case TrainConfig():
            from gumshoe.train.sft import train_sft

            return train_sft(config)
        case DpoConfig():
            from gumshoe.train.dpo import train_dpo

            return train_dpo(config)
        case GrpoConfig():
            from gumshoe.train.grpo import train_grpo

            return train_grpo(config)


PREFLIGHT_EXAMPLES = """\
examples:
  gumshoe preflight configs/train/smollm2.yaml
  gumshoe preflight configs/train/smollm2.yaml -p dataset=datasets/demo --row 3

Exit code 2: a row has nothing to train, or would be truncated.
"""


def configure_preflight(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.epilog = PREFLIGHT_EXAMPLES
    parser.add_argument("config", type=Path, help="YAML file of the training run (see configs/train)")
    parser.add_argument("-p", "--param", action="append", default=[], metavar="KEY=VALUE", help="override a value")
    parser.add_argument("--row", type=int, default=0, help="row that is shown, counted as they train (default: 0)")


def run_preflight(arguments: argparse.Namespace) -> int:
    """Renders all rows, shows what trains, then checks."""
    config = read_config(arguments.config, arguments.param)
    quieten()
    match config:
        case TrainConfig():
            _show_rows(config, arguments.row)
        case DpoConfig():
            _show_pairs(config, arguments.row)
        case _:
            raise ConfigError(f"preflight checks a dataset, and method: {config.method} has none")
    return 0


def _show_rows(config: TrainConfig, number: int) -> None:
    rows = load_rows(Path(config.dataset), config.view, config.train_split, limit=config.limit)
    renderer = open_renderer(config, rows)
    reports: list[RowReport] = []
    example: Rendered | None = None
    for row, rendered in reported(rows, renderer, config.sampling):
        reports.append(row)
        if row.index == number:
            example = rendered
    _check_row(number, len(reports))  # There may be more than in the dataset, as long ones are cut into windows.
    assert example is not None
    report = Preflight(tuple(reports), config.max_length)
    console = Console(highlight=False)
    console.print(mask_text(renderer, example), soft_wrap=True)
    counts = {"tokens": [row.tokens for row in report.rows], "trained": [row.trained for row in report.rows]}
    table = _count_table(f"{len(report.rows)} rows", "", counts)
    table.add_row(f"over {report.max_length} tokens", str(len(report.too_long)))
    table.add_row("nothing to train", str(len(report.untrained)))
    table.add_row("turns masked out", str(sum(row.masked for row in report.rows)))
    if report.drift.turns:
        table.add_row("turns with the tokens that were sampled", str(report.drift.turns))
        table.add_row("of which rendering gives other tokens", str(report.drift.changed))
        table.add_row("of another tokenizer, so trained as rendered", str(report.drift.foreign))
    console.print(table)
    report.check(config.too_long)


def _show_pairs(config: DpoConfig, number: int) -> None:
    """What is compared in a pair, decision by decision."""
    from gumshoe.train.dpo import fitting_pairs, load_pairs, pair_of

    rows = load_pairs(config, config.train_split)
    _check_row(number, len(rows))
    renderer = open_renderer(config, rows)
    pairs = [pair_of(row, renderer) for row in conversations(rows)]
    console = Console(highlight=False)
    for name, rendered in pairs[number].sides():
        console.print(f"{name}:")
        console.print(mask_text(renderer, rendered), soft_wrap=True)
    parts = ("prompt", "chosen", "rejected")
    counts = {part: [len(getattr(pair, part)) for pair in pairs] for part in parts}
    table = _count_table(f"{len(pairs)} pairs", "tokens", counts)
    table.add_row(f"pairs over {config.max_length}", str(sum(pair.length > config.max_length for pair in pairs)))
    console.print(table)
    fitting_pairs(pairs, config.max_length, config.too_long)


def _check_row(number: int, count: int) -> None:
    if not 0 <= number < count:
        raise ConfigError(f"--row: there is no row {number}, the rows are 0 to {count - 1}")


def _count_table(title: str, what: str, counts: dict[str, list[int]]) -> Table:
    """A table of numbers of tokens: their sum and their spread."""
    table = Table(what, "all", "shortest", "median", "longest", title=title)
    for name, values in counts.items():
        spread = (sum(values), min(values), median_high(values), max(values))
        table.add_row(name, *(f"{value:,}" for value in spread))
    return table


UNPACK_EXAMPLES = """\
examples:
  gumshoe unpack SmolLM2-135M-Instruct.Q4_1.gguf --out models/smollm2 --chat-template hermes
  gumshoe unpack models/mine --out models/mine-with-tools --chat-template tools.jinja

Packed weights are dequantized to bfloat16. The folder contains links to the weights, which stay in the cache
($GUMSHOE_CACHE, or ~/.cache/gumshoe) or in their original folder.
"""


def configure_unpack(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.epilog = UNPACK_EXAMPLES
    parser.add_argument("model", help=".gguf file, model folder, or hub ID")
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    parser.add_argument(
        "--chat-template", metavar="TEMPLATE", help="hermes, llama3, or a file (default: the model's own)"
    )


def run_unpack(arguments: argparse.Namespace) -> int:
    """Writes the folder and prints where it is."""
    quieten()
    out: Path = arguments.out
    if out.exists() and (out.is_file() or any(out.iterdir())):
        raise ConfigError(f"--out: {out} already exists: choose another folder")
    source = _folder_of(local_model(arguments.model))
    check_model_files(source, error=ConfigError)
    tokenizer = load_tokenizer(str(source), None)
    if arguments.chat_template is not None:
        tokenizer.chat_template = read_template(arguments.chat_template)
    check_tools(tokenizer, str(tokenizer.chat_template or ""))
    try:
        with new_folder(out) as fresh:
            tokenizer.save_pretrained(str(fresh))
            for file in source.iterdir():
                if not (fresh / file.name).exists():
                    (fresh / file.name).symlink_to(file.resolve())
    except OSError as error:
        raise ConfigError(f"--out: {out} cannot be written: {error.strerror or error}") from None
    print(out)
    return 0


def _folder_of(model: str) -> Path:
    """The folder of a model, for a hub id that of the newest snapshot. Raises ConfigError."""
    if Path(model).is_dir():
        return Path(model)
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(model))
    except (OSError, ValueError) as error:
        raise ConfigError(f"model {model} cannot be loaded: {' '.join(str(error).split())[:200]}") from None

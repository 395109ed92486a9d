"""`gumshoe preflight`: show which tokens of a dataset would be trained on, and check it."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median_high
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from rich.table import Table

from gumshoe.console import Console
from gumshoe.errors import ConfigError
from gumshoe.train.config import DpoConfig, TrainConfig, read_config
from gumshoe.train.masks import mask_html, mask_text
from gumshoe.train.model import open_renderer, quieten
from gumshoe.train.rows.dataset import conversations, load_rows
from gumshoe.train.rows.pairs import fitting_pairs, pair_of
from gumshoe.train.rows.preflight import Preflight, prepare, rendered_row

if TYPE_CHECKING:
    from gumshoe.train.rows.render import Drift, Rendered, Renderer

__all__ = ["configure", "run"]

_BARS = 10
_WIDTH = 40

EPILOG = """\
examples:
  gumshoe preflight configs/train/smollm2.yaml
  gumshoe preflight configs/train/smollm2.yaml -p dataset=datasets/demo --row 3
  gumshoe preflight configs/train/smollm2.yaml --html mask.html --rows 20

Exit code 2: a row has nothing to train, or would be truncated.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.epilog = EPILOG
    parser.add_argument("config", type=Path, help="YAML file of the training run (see configs/train)")
    parser.add_argument("-p", "--param", action="append", default=[], metavar="KEY=VALUE", help="override a value")
    parser.add_argument("--row", type=int, default=0, help="row whose mask is shown on the terminal (default: 0)")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write the masks to an HTML page")
    parser.add_argument("--rows", type=int, default=8, help="number of rows on the page (default: 8)")


def run(arguments: argparse.Namespace) -> int:
    """Renders all rows, shows what trains, then checks."""
    config = read_config(arguments.config, arguments.param)
    quieten()
    match config:
        case TrainConfig():
            _show_rows(config, arguments)
        case DpoConfig():
            _show_pairs(config, arguments)
        case _:
            raise ConfigError(f"preflight checks a dataset, and method: {config.method} has none")
    return 0


def _show_rows(config: TrainConfig, arguments: argparse.Namespace) -> None:
    rows = load_rows(Path(config.dataset), config.view, config.train_split, limit=config.limit)
    _check_row(arguments.row, len(rows))
    renderer = open_renderer(config, rows)
    with TemporaryDirectory() as scratch:
        ready, report = prepare(rows, renderer, config.sampling, Path(scratch) / "rows.arrow")
        example = rendered_row(ready[min(arguments.row, len(ready) - 1)])
        shown = [(report.rows[at].id, rendered_row(ready[at])) for at in range(min(arguments.rows, len(ready)))]
    console = Console(highlight=False)
    console.print(mask_text(renderer, example), soft_wrap=True)
    counts = {"tokens": [row.tokens for row in report.rows], "trained": [row.trained for row in report.rows]}
    table = _counts(f"{len(report.rows)} rows", "", counts)
    table.add_row(f"over {report.max_length} tokens", str(len(report.too_long)))
    table.add_row("nothing to train", str(len(report.untrained)))
    table.add_row("turns masked out", str(sum(row.masked for row in report.rows)))
    console.print(table)
    if report.drift.turns:
        console.print(_drift(report.drift))
    console.print(_lengths(report))
    if arguments.html is not None:
        _write_page(config, arguments.html, renderer, shown, f"{len(shown)} of {len(report.rows)} rows")
        console.print(f"masks of {len(shown)} rows: {arguments.html}", soft_wrap=True)
    report.check(config.too_long)


def _show_pairs(config: DpoConfig, arguments: argparse.Namespace) -> None:
    """What is compared in a pair, decision by decision."""
    from gumshoe.train.dpo import load_pairs

    rows = load_pairs(config, config.train_split)
    _check_row(arguments.row, len(rows))
    renderer = open_renderer(config, rows)
    pairs = [pair_of(row, renderer) for row in conversations(rows)]
    console = Console(highlight=False)
    for name, rendered in pairs[arguments.row].sides():
        console.print(f"{name}:")
        console.print(mask_text(renderer, rendered), soft_wrap=True)
    parts = ("prompt", "chosen", "rejected")
    counts = {part: [len(getattr(pair, part)) for pair in pairs] for part in parts}
    table = _counts(f"{len(pairs)} pairs", "tokens", counts)
    table.add_row(f"pairs over {config.max_length}", str(sum(pair.length > config.max_length for pair in pairs)))
    console.print(table)
    if arguments.html is not None:
        chosen = pairs[: arguments.rows]
        shown = [(f"{pair.id} {name}", side) for pair in chosen for name, side in pair.sides()]
        _write_page(config, arguments.html, renderer, shown, f"{len(chosen)} of {len(pairs)} pairs")
        console.print(f"masks of {len(chosen)} pairs: {arguments.html}", soft_wrap=True)
    fitting_pairs(pairs, config.max_length, config.too_long)


def _check_row(number: int, count: int) -> None:
    if not 0 <= number < count:
        raise ConfigError(f"--row: there is no row {number}, the rows are 0 to {count - 1}")


def _write_page(
    config: TrainConfig | DpoConfig,
    path: Path,
    renderer: Renderer,
    shown: Sequence[tuple[str, Rendered]],
    selection: str,
) -> None:
    note = f"{selection} of {config.dataset}, {config.view}, {config.train_split}."
    try:
        path.write_text(mask_html(renderer, shown, note), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"--html: {path} cannot be written: {error.strerror or error}") from None


def _counts(title: str, what: str, counts: dict[str, list[int]]) -> Table:
    """A table of numbers of tokens: their sum and their spread."""
    table = Table(what, "all", "shortest", "median", "longest", title=title)
    for name, values in counts.items():
        spread = (sum(values), min(values), median_high(values), max(values))
        table.add_row(name, *(f"{value:,}" for value in spread))
    return table


def _drift(drift: Drift) -> Table:
    """What training on the sampled tokens keeps from changing."""
    table = Table("", "turns", title=f"{drift.turns:,} turns with the tokens that were sampled")
    table.add_row("rendering gives the same tokens", f"{drift.same:,}")
    table.add_row("rendering gives other tokens of the same text", f"{drift.retokenized:,}")
    table.add_row("rendering gives another text", f"{drift.rewritten:,}")
    table.add_row("of another tokenizer, so trained as rendered", f"{drift.foreign:,}")
    table.caption = f"{drift.changed:,} sampled tokens stand in turns that rendering would have changed"
    return table


def _lengths(report: Preflight) -> Table:
    """How many rows there are of each length, in ten equal steps up to the longest."""
    longest = max(row.tokens for row in report.rows)
    step = max(1, -(-longest // _BARS))
    counts = Counter((row.tokens - 1) // step for row in report.rows)
    table = Table("tokens", "rows", "", title="length of the rows")
    for bar in range(max(counts) + 1):
        mark = " over" if (bar + 1) * step > report.max_length else ""
        width = round(counts[bar] / max(counts.values()) * _WIDTH)
        table.add_row(f"{bar * step + 1:,} to {(bar + 1) * step:,}{mark}", str(counts[bar]), "█" * width)
    return table

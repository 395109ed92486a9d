"""`gumshoe preflight`: show which tokens of a dataset would be trained on, and check it."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from rich.table import Table

from gumshoe.console import Console
from gumshoe.errors import ConfigError
from gumshoe.train.commands.methods import read_config
from gumshoe.train.commands.train import quieten
from gumshoe.train.config import TrainConfig
from gumshoe.train.dpo_config import DpoConfig

if TYPE_CHECKING:
    from gumshoe.train.pairs import PreferencePair
    from gumshoe.train.preflight import Preflight
    from gumshoe.train.sampled import Drift

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
    if isinstance(config, DpoConfig):
        return _pairs(config, arguments)
    if not isinstance(config, TrainConfig):
        raise ConfigError(f"preflight checks a dataset, and method:  {config.method} has none")
    return _rows(config, arguments)


def _rows(config: TrainConfig, arguments: argparse.Namespace) -> int:
    from gumshoe.train.data import load_rows
    from gumshoe.train.mask import mask_html, mask_text
    from gumshoe.train.preflight import prepare, rendered_row
    from gumshoe.train.starting_point import open_renderer

    rows = load_rows(Path(config.dataset), config.view, config.train_split, limit=config.limit)
    if not 0 <= arguments.row < len(rows):
        raise ConfigError(f"--row: there is no row {arguments.row}, the rows are 0 to {len(rows) - 1}")
    with TemporaryDirectory() as scratch:
        renderer = open_renderer(config, rows)
        ready, report = prepare(rows, renderer, config.sampling, Path(scratch) / "rows.arrow")
        wanted = min(arguments.row, len(ready) - 1)
        shown = [(report.rows[at].id, rendered_row(ready[at])) for at in range(min(arguments.rows, len(ready)))]
        console = Console(highlight=False)
        console.print(mask_text(renderer, rendered_row(ready[wanted])), soft_wrap=True)
    console.print(_summary(report))
    if report.drift.turns:
        console.print(_drift(report.drift))
    console.print(_lengths(report))
    if arguments.html is not None:
        note = f"{len(shown)} of {len(report.rows)} rows of {config.dataset}, {config.view}, {config.train_split}."
        _write(arguments.html, mask_html(renderer, shown, note))
        console.print(f"masks of {len(shown)} rows: {arguments.html}", soft_wrap=True)
    report.check(config.too_long)
    return 0


def _pairs(config: DpoConfig, arguments: argparse.Namespace) -> int:
    """What is compared in a pair, decision by decision."""
    from gumshoe.train.data import conversations
    from gumshoe.train.dpo import load_pairs
    from gumshoe.train.mask import mask_html, mask_text
    from gumshoe.train.pairs import fitting_pairs, pair_of
    from gumshoe.train.starting_point import open_renderer

    rows = load_pairs(config, config.train_split)
    if not 0 <= arguments.row < len(rows):
        raise ConfigError(f"--row: there is no row {arguments.row}, the rows are 0 to {len(rows) - 1}")
    renderer = open_renderer(config, rows)
    pairs = [pair_of(row, renderer) for row in conversations(rows)]
    console = Console(highlight=False)
    for name, rendered in pairs[arguments.row].sides():
        console.print(f"{name}:")
        console.print(mask_text(renderer, rendered), soft_wrap=True)
    console.print(_pairs_summary(pairs, config.max_length))
    if arguments.html is not None:
        shown = [(f"{pair.id} {name}", side) for pair in pairs[: arguments.rows] for name, side in pair.sides()]
        note = f"{len(shown) // 2} of {len(pairs)} pairs of {config.dataset}, {config.view}, {config.train_split}."
        _write(arguments.html, mask_html(renderer, shown, note))
        console.print(f"masks of {len(shown) // 2} pairs: {arguments.html}", soft_wrap=True)
    fitting_pairs(pairs, config.max_length, config.too_long)
    return 0


def _pairs_summary(pairs: Sequence[PreferencePair], max_length: int) -> Table:
    table = Table("tokens", "all", "shortest", "median", "longest", title=f"{len(pairs)} pairs")
    for name in ("prompt", "chosen", "rejected"):
        counts = [len(getattr(pair, name)) for pair in pairs]
        table.add_row(name, f"{sum(counts):,}", *_spread(counts))
    table.add_row(f"pairs over {max_length}", str(sum(pair.length > max_length for pair in pairs)))
    return table


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"--html: {path} cannot be written: {error.strerror or error}") from None


def _summary(report: Preflight) -> Table:
    table = Table("", "all", "shortest", "median", "longest", title=f"{len(report.rows)} rows")
    table.add_row("tokens", f"{report.tokens:,}", *_spread([row.tokens for row in report.rows]))
    table.add_row("trained", f"{report.trained:,}", *_spread([row.trained for row in report.rows]))
    table.add_row(f"over {report.max_length} tokens", str(len(report.too_long)))
    table.add_row("nothing to train", str(len(report.untrained)))
    table.add_row("turns masked out", str(sum(row.masked for row in report.rows)))
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


def _spread(counts: Sequence[int]) -> list[str]:
    ordered = sorted(counts)
    return [f"{value:,}" for value in (ordered[0], ordered[len(ordered) // 2], ordered[-1])]

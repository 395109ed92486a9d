"""The arms side by side on a terminal."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.table import Table as TerminalTable
from rich.text import Text

from gumshoe.console import Console
from gumshoe.eval.records import Summary
from gumshoe.eval.results.metrics import BY_NAME, own_metrics
from gumshoe.eval.results.tables import Table, repair_tables, seeker_tables
from gumshoe.tools.text import plural

__all__ = ["print_table"]

SHOWN = (
    "valid_calls",
    "file_acc@1",
    "function_acc@1",
    "function_recall",
    "line_recall",
    "line_precision",
    "grounding",
    "quoted",
    "steps",
    "tokens",
)


def print_table(summary: Summary, console: Console) -> None:
    """Prints what was found and what was fixed, a table for each group of tasks.

    The tables show means, each with its 95% interval below it.
    """
    shown = [BY_NAME[name] for name in SHOWN]
    for table in seeker_tables(summary, [*shown, *own_metrics(summary)]):
        _print(table, "", console)
    for table in repair_tables(summary):
        _print(table, "fixed, ", console)


def _print(table: Table, what: str, console: Console) -> None:
    title = f"{what}{table.title}: {plural(table.tasks, 'task')}, mean and 95% interval"
    shown = TerminalTable(title=Text(title), title_justify="left", box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    shown.add_column("arm")
    for metric in table.metrics:
        shown.add_column(metric.title, justify="right")
    for row in table.rows:
        shown.add_row(Text(row.label), *(Text(f"{cell.value}\n{cell.interval}") for cell in row.cells))
    console.print(shown)

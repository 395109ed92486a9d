"""The arms side by side on a terminal."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gumshoe.eval.report.page import GROUP_NAMES, METRICS, write_cell
from gumshoe.eval.results import ALL, Measured, Summary

__all__ = ["print_table"]

SHOWN = (
    "valid_calls",
    "file_recall",
    "function_recall",
    "line_recall",
    "line_precision",
    "grounding",
    "steps",
    "tokens",
)
UNKNOWN = Measured(value=None, low=None, high=None, count=0)


def print_table(summary: Summary, console: Console) -> None:
    """One table for each group of tasks: means, and below each its 95% interval."""
    groups = [group for group in summary.tasks if group != ALL] or [ALL]
    metrics = [metric for metric in METRICS if metric.name in SHOWN]
    for group in groups:
        title = f"{GROUP_NAMES.get(group, group)}: {summary.tasks[group]} tasks, mean and 95% interval"
        table = Table(title=Text(title), title_justify="left", box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
        table.add_column("arm")
        for metric in metrics:
            table.add_column(metric.title, justify="right")
        for arm in summary.arms:
            cells = [write_cell(arm.groups.get(group, {}).get(metric.name, UNKNOWN), metric) for metric in metrics]
            table.add_row(Text(arm.title), *(Text(f"{cell.value}\n{cell.interval}") for cell in cells))
        console.print(table)

"""The arms side by side on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gumshoe.eval.report.page import GROUP_NAMES, METRICS, SOLVED, SOLVER, write_cell
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
            if arm.policy.kind == SOLVER:
                continue
            cells = [write_cell(arm.groups.get(group, {}).get(metric.name, UNKNOWN), metric) for metric in metrics]
            table.add_row(Text(arm.title), *(Text(f"{cell.value}\n{cell.interval}") for cell in cells))
        console.print(table)
    _print_worth(summary, groups, console)


def _print_worth(summary: Summary, groups: Sequence[str], console: Console) -> None:
    """What the solver repairs with each arm's report; nothing where no solver was run."""
    if not any(arm.policy.kind == SOLVER for arm in summary.arms):
        return
    table = Table(title=Text("solved with the report, mean and 95% interval"), title_justify="left", box=SIMPLE_HEAD)
    table.add_column("arm")
    for group in groups:
        table.add_column(GROUP_NAMES.get(group, group), justify="right")
    for arm in summary.arms:
        cells = [write_cell(arm.groups.get(group, {}).get(SOLVED.name, UNKNOWN), SOLVED) for group in groups]
        table.add_row(Text(arm.title), *(Text(f"{cell.value} [{cell.interval}]") for cell in cells))
    console.print(table)

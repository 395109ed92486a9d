"""How figures are written for people: names of groups, cells, and the arms side by side as tables on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from gumshoe.console import Console
from gumshoe.eval.records import ALL, ArmSummary, Comparison, Measured, Summary
from gumshoe.eval.score.measures import UNMEASURED, measured
from gumshoe.eval.score.metrics import BY_NAME, Metric
from gumshoe.text import plural

UNKNOWN = "\N{EN DASH}"
UNLIMITED = 10_000
"""Columns, for measuring a table that is wider than the terminal."""
GROUP_NAMES = {
    ALL: "all tasks",
    "heldout_bugs": "held-out bugs",
    "heldout_projects": "held-out projects",
    "train": "training tasks",
}
SHOWN = (
    "valid_calls",
    "file_acc@1",
    "function_acc@1",
    "function_recall",
    "line_recall",
    "line_precision",
    "grounding",
    "steps",
    "tokens",
)
UPLIFT = Metric("uplift", "Uplift", "percentage points that the arm adds to the solver alone, task by task")
TEST = Metric("p", "p", "exact McNemar test of that difference", unit="")
SPENDINGS = (
    Metric("tokens", "Seeker tokens", "tokens of the seeker for one fixed bug", unit="tokens"),
    Metric("solver_tokens", "Solver tokens", "tokens of the solver for one fixed bug", unit="tokens"),
    Metric("cost", "Seeker dollars", "dollars of the seeker for one fixed bug", unit="dollars"),
    Metric("solver_cost", "Solver dollars", "dollars of the solver for one fixed bug", unit="dollars"),
)


@dataclass(frozen=True)
class Cell:
    """A measure as text: the mean and its interval."""

    value: str
    interval: str


Rows = Sequence[tuple[str, Sequence[Cell]]]
"""Arms with their cells, which are in the order of the table's metrics."""


def print_table(summary: Summary, console: Console) -> None:
    """Prints what was found and what was fixed, a table for each group of tasks.

    The tables show means, each with its 95% interval below it.
    """
    seekers = [arm for arm in summary.arms if arm.seeks]
    metrics = [*(BY_NAME[name] for name in SHOWN), *own_metrics(summary)]
    for group in shown_groups(summary):
        found = [(arm.title, [cell_of(arm, group, metric) for metric in metrics]) for arm in seekers]
        _print(named(group), summary.tasks.get(group, 0), metrics, found, console)
    for group in shown_groups(summary):
        _print_repairs(summary, group, console)


def _print(title: str, tasks: int, metrics: Sequence[Metric], rows: Rows, console: Console) -> None:
    """Prints a table, or two with half of the metrics each where one is so wide that text would be cut."""
    text = Text(f"{title}: {plural(tasks, 'task')}, mean and 95% interval")
    table = Table(title=text, title_justify="left", box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    table.add_column("arm", min_width=_widest(word for label, _ in rows for word in label.split()))
    for number, metric in enumerate(metrics):
        words = metric.title.split()
        lines = (line for _, cells in rows for line in (cells[number].value, cells[number].interval))
        width = _widest((*words, *lines))
        table.add_column("\n".join(words), justify="right", no_wrap=True, min_width=width)
    for label, cells in rows:
        table.add_row(Text(label), *(Text(f"{cell.value}\n{cell.interval}") for cell in cells))
    needed = console.measure(table, options=console.options.update(width=UNLIMITED)).minimum
    if needed <= console.width or len(metrics) == 1:
        console.print(table)
        return
    half = (len(metrics) + 1) // 2
    for part in (slice(half), slice(half, None)):
        _print(title, tasks, metrics[part], [(label, cells[part]) for label, cells in rows], console)


def _widest(lines: Iterable[str]) -> int:
    return max(map(len, lines), default=0)


def _print_repairs(summary: Summary, group: str, console: Console) -> None:
    """What became of the bugs of one group with each arm's pack, and at what cost; nothing without a solver."""
    arms = [arm for arm in summary.arms if measured(arm, ALL, "solved").count]
    if not arms:
        return
    passes = sorted({name for arm in arms for name in arm.groups[ALL] if name.startswith("pass@")}, key=_k)
    optional = [
        BY_NAME["official"],
        BY_NAME["adherence"],
        *(Metric(name, name, f"at least one of {_k(name)} samples is right") for name in passes[-1:]),
    ]
    shown = [
        BY_NAME["solved"],
        *(metric for metric in optional if any(measured(arm, ALL, metric.name).count for arm in arms)),
    ]
    spent = {arm.name: arm.per_resolved.get(group, {}) for arm in arms}
    paid = [metric for metric in SPENDINGS if any(metric.name in of_arm for of_arm in spent.values())]
    uplift = {
        one.arm: one
        for one in summary.comparisons
        if (one.metric, one.group) == ("solved", group) and one.baseline == summary.baseline
    }
    rows = [
        (
            arm.title,
            (
                *(cell_of(arm, group, metric) for metric in shown),
                *_uplift_cells(uplift.get(arm.name)),
                *(write_cell(spent[arm.name].get(metric.name, UNMEASURED), metric) for metric in paid),
            ),
        )
        for arm in arms
    ]
    _print(f"fixed, {named(group)}", summary.tasks.get(group, 0), (*shown, UPLIFT, TEST, *paid), rows, console)


def _uplift_cells(found: Comparison | None) -> tuple[Cell, Cell]:
    if found is None or found.difference.value is None:
        return Cell(UNKNOWN, ""), Cell(UNKNOWN, "")
    low, high = found.difference.low or 0.0, found.difference.high or 0.0
    p = UNKNOWN if found.mcnemar_p is None else f"{found.mcnemar_p:.3g}"
    return (
        Cell(f"{found.difference.value * 100:+.0f}", f"{low * 100:+.0f} to {high * 100:+.0f}"),
        Cell(p, f"{found.better} better, {found.worse} worse"),
    )


def _k(name: str) -> int:
    return int(name.partition("@")[2])


def own_metrics(summary: Summary) -> list[Metric]:
    """Metrics that the config added, under their own names."""
    return [Metric(name, name.replace("_", " ").capitalize(), "", unit) for name, unit in summary.own_metrics.items()]


def percent(value: float | None) -> str:
    """A share as people read it: `43%`; a dash where it is unknown."""
    return UNKNOWN if value is None else f"{value * 100:.0f}%"


def write_cell(found: Measured, metric: Metric) -> Cell:
    """A measure as text."""
    if found.value is None:
        return Cell(UNKNOWN, "")
    low, high = found.low or 0.0, found.high
    if metric.unit == "share":
        return Cell(percent(found.value), f"{low * 100:.0f} to {(high or 0.0) * 100:.0f}")
    digits = 0 if found.value >= 100 else 1 if found.value >= 10 else 2 if found.value >= 0.1 else 4
    upper = ", no upper bound" if high is None else f" to {high:,.{digits}f}"
    return Cell(f"{found.value:,.{digits}f}", f"{low:,.{digits}f}{upper}")


def cell_of(arm: ArmSummary, group: str, metric: Metric) -> Cell:
    """An arm's measure of a metric in a group, as text."""
    return write_cell(measured(arm, group, metric.name), metric)


def named(group: str) -> str:
    """The display name of a group of tasks."""
    return GROUP_NAMES.get(group, group)


def shown_groups(summary: Summary) -> list[str]:
    """The splits; all tasks together where there are none."""
    return [group for group in summary.tasks if group != ALL] or [ALL]

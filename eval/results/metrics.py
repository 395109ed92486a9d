"""How measures are named and written."""

from __future__ import annotations

from dataclasses import dataclass

from gumshoe.eval.records import ALL, ArmSummary, Measured, Summary
from gumshoe.eval.scorers.ranking import ACC

__all__ = [
    "BY_NAME",
    "GROUP_NAMES",
    "METRICS",
    "UNKNOWN",
    "UNMEASURED",
    "Cell",
    "Metric",
    "cell_of",
    "measured",
    "named",
    "own_metrics",
    "percent",
    "shown_groups",
    "write_cell",
]

GROUP_NAMES = {
    ALL: "all tasks",
    "heldout_bugs": "held-out bugs",
    "heldout_projects": "held-out projects",
    "train": "training tasks",
}
UNKNOWN = "\N{EN DASH}"
UNMEASURED = Measured(value=None, low=None, high=None, count=0)


@dataclass(frozen=True)
class Metric:
    """How a metric is named and written."""

    name: str
    title: str
    help: str
    share: bool = True


METRICS = (
    Metric("solved", "Solved", "bugs that are fixed in the end"),
    Metric("official", "Official", "bugs that are fixed according to the official harness"),
    Metric("adherence", "Adherence", "patches that change a line that was reported to the solver"),
    Metric("valid_calls", "Valid calls", "turns whose tool calls could be carried out"),
    Metric("reported", "Reported", "episodes that made a report before their limit"),
    Metric("file_recall", "File recall", "files that the fix touches, named in the report"),
    Metric("function_recall", "Function recall", "functions that the fix touches, named in the report"),
    Metric("line_recall", "Line recall", "lines that the fix touches, named in the report"),
    Metric("line_precision", "Line precision", "lines named in the report that the fix touches: context efficiency"),
    Metric("line_f1", "Line F1", "harmonic mean of precision and recall, in lines"),
    Metric("reciprocal_rank", "Reciprocal rank", "1 / rank of the first location that holds a line of the fix"),
    *(
        Metric(
            f"{level}_acc@{k}", f"{level.capitalize()}@{k}", f"all {level}s that the fix edits are among the first {k}"
        )
        for level, k in ACC
    ),
    Metric("grounding", "Grounded", "findings that a new run confirms and that tell failing tests from passing ones"),
    Metric("brier", "Brier", "squared error of the stated confidence: 0 is best, 0.25 is a coin", share=False),
    Metric("debugged", "Debugged", "episodes that used the debugger"),
    Metric("repeats", "Repeats", "calls that repeat an earlier one"),
    Metric("steps", "Steps", "turns of an episode", share=False),
    Metric("tokens", "Tokens", "tokens of an episode, prompt and completion", share=False),
    Metric("cost", "Cost", "dollars of an episode", share=False),
    Metric("solver_steps", "Solver steps", "turns of the solver, or changes that it tried", share=False),
    Metric("solver_tokens", "Solver tokens", "tokens of the solver on a task", share=False),
    Metric("solver_cost", "Solver cost", "dollars of the solver on a task", share=False),
)
"""Everything that a summary averages, except pass@k and metrics of the config's own."""
BY_NAME = {metric.name: metric for metric in METRICS}


@dataclass(frozen=True)
class Cell:
    """A measure as text: the mean and its interval."""

    value: str
    interval: str


def own_metrics(summary: Summary) -> list[Metric]:
    """Metrics that the config added, as numbers under their own names."""
    names = {name: None for arm in summary.arms for name in arm.groups.get(ALL, {})}
    return [
        Metric(name, name.replace("_", " ").capitalize(), "", share=False)
        for name in names
        if name not in BY_NAME and not name.startswith("pass@")
    ]


def percent(value: float | None) -> str:
    """A share as people read it: `43%`; a dash where it is unknown."""
    return UNKNOWN if value is None else f"{value * 100:.0f}%"


def write_cell(found: Measured, metric: Metric) -> Cell:
    """A measure as text."""
    if found.value is None:
        return Cell(UNKNOWN, "")
    low, high = found.low or 0.0, found.high
    if metric.share:
        return Cell(percent(found.value), f"{low * 100:.0f} to {(high or 0.0) * 100:.0f}")
    digits = 0 if found.value >= 100 else 1 if found.value >= 10 else 2 if found.value >= 0.1 else 4
    upper = ", no upper bound" if high is None else f" to {high:,.{digits}f}"
    return Cell(f"{found.value:,.{digits}f}", f"{low:,.{digits}f}{upper}")


def measured(arm: ArmSummary, group: str, metric: str) -> Measured:
    """An arm's measure of a metric in a group."""
    return arm.groups.get(group, {}).get(metric, UNMEASURED)


def cell_of(arm: ArmSummary, group: str, metric: Metric) -> Cell:
    """An arm's measure of a metric in a group, as text."""
    return write_cell(measured(arm, group, metric.name), metric)


def named(group: str) -> str:
    """The display name of a group of tasks."""
    return GROUP_NAMES.get(group, group)


def shown_groups(summary: Summary) -> list[str]:
    """The splits; all tasks together where there are none."""
    return [group for group in summary.tasks if group != ALL] or [ALL]

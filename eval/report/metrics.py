"""How measures are named and written, on the page and on the terminal."""

from __future__ import annotations

from dataclasses import dataclass

from gumshoe.eval.results import ALL, ArmSummary, Measured, Summary

__all__ = [
    "CONDUCT",
    "GROUP_NAMES",
    "METRICS",
    "SOLVED",
    "UNKNOWN",
    "UNMEASURED",
    "Cell",
    "Metric",
    "cell_of",
    "measured",
    "named",
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
    Metric("valid_calls", "Valid calls", "turns whose tool calls could be carried out"),
    Metric("reported", "Reported", "episodes that handed something over before their limit"),
    Metric("file_recall", "File recall", "files that the fix touches, named in the report"),
    Metric("function_recall", "Function recall", "functions that the fix touches, named in the report"),
    Metric("line_recall", "Line recall", "lines that the fix touches, named in the report"),
    Metric("line_precision", "Line precision", "lines named in the report that the fix touches"),
    Metric("first_right", "First right", "1 / rank of the first right location"),
    Metric("grounding", "Grounded", "findings whose quote stands in the step that they cite"),
    Metric("replayed", "Seen again", "findings whose quote stands there again when the steps are run anew"),
    Metric("debugged", "Debugged", "episodes that used the debugger"),
    Metric("steps", "Steps", "turns an episode took", share=False),
    Metric("tokens", "Tokens", "tokens an episode used, prompt and answer", share=False),
)
CONDUCT = (
    Metric("file_f1", "File F1", "harmonic mean of precision and recall, in files"),
    Metric("function_f1", "Function F1", "the same in functions"),
    Metric("line_f1", "Line F1", "the same in lines"),
    Metric("first_rank", "First rank", "place of the first right location, where there is one", share=False),
    Metric("first_debugger", "First debugger", "turn of the first use of the debugger", share=False),
    Metric("repeats", "Repeats", "calls that ask for what was asked for before"),
    Metric("looped", "Loops", "episodes with the same call three times in a row"),
    Metric("early_report", "Early", "reports made before their first place was on screen, or before anything was run"),
    Metric("late_report", "Late", "episodes that went on for more than five turns with the cause on screen"),
    Metric("brier", "Brier", "squared error of the stated confidence: 0 is best, 0.25 is a coin", share=False),
)
SOLVED = Metric("solved", "Solved", "bugs that are repaired in the end")


@dataclass(frozen=True)
class Cell:
    """A measure as text: the mean, its interval, and the share that a bar shows (None: no bar)."""

    value: str
    interval: str
    share: float | None


def percent(value: float | None) -> str:
    """A share as people read it: `43%`; a dash where it is unknown."""
    return UNKNOWN if value is None else f"{value * 100:.0f}%"


def write_cell(found: Measured, metric: Metric) -> Cell:
    """A measure as text."""
    if found.value is None:
        return Cell(UNKNOWN, "", None)
    low, high = found.low or 0.0, found.high
    if metric.share:
        return Cell(percent(found.value), f"{low * 100:.0f} to {(high or 0.0) * 100:.0f}", found.value)
    digits = 0 if found.value >= 100 else 1 if found.value >= 10 else 2 if found.value >= 0.1 else 4
    upper = "no bound" if high is None else f"{high:,.{digits}f}"
    return Cell(f"{found.value:,.{digits}f}", f"{low:,.{digits}f} to {upper}", None)


def measured(arm: ArmSummary, group: str, metric: str) -> Measured:
    """What an arm has on a metric in a group."""
    return arm.groups.get(group, {}).get(metric, UNMEASURED)


def cell_of(arm: ArmSummary, group: str, metric: Metric) -> Cell:
    """The same as text."""
    return write_cell(measured(arm, group, metric.name), metric)


def named(group: str) -> str:
    """What people call a group of tasks."""
    return GROUP_NAMES.get(group, group)


def shown_groups(summary: Summary) -> list[str]:
    """The splits; all tasks together where there are none."""
    return [group for group in summary.tasks if group != ALL] or [ALL]

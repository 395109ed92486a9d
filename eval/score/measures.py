"""Means over tasks with their intervals, for every metric and group of tasks, and paired differences between arms.

And how they are named and written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gumshoe.eval.records import ALL, ArmSummary, CalibrationBin, Comparison, Measured, Result, Summary
from gumshoe.eval.score import stats
from gumshoe.eval.score.ranking import ACC

__all__ = [
    "BY_NAME",
    "GROUP_NAMES",
    "METRICS",
    "OUTCOMES",
    "SPENT_TIME",
    "UNKNOWN",
    "UNMEASURED",
    "Cell",
    "Metric",
    "calibration_of",
    "calls_by_tool",
    "cell_of",
    "compare",
    "compare_all",
    "groups_of",
    "in_group",
    "measured",
    "measures",
    "named",
    "own_metrics",
    "per_resolved",
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
OUTCOMES = ("solved", "official")
"""Whether the bug is repaired in the end: according to our grader, and to the official harness."""
SPENT = ("tokens", "solver_tokens", "cost", "solver_cost")
SPENT_TIME = ("seconds", "solver_seconds")
COMPARED_METRICS = ("valid_calls", "file_recall", "function_recall", "line_recall", "line_f1", "reciprocal_rank")


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


def groups_of(results: Iterable[Result]) -> list[str]:
    """`all`, then each split by name; only `all` where there are no splits."""
    splits = sorted({result.split for result in results} - {ALL})
    return [ALL, *splits]


def in_group(results: Iterable[Result], group: str) -> list[Result]:
    """The results on tasks of one split; all of them for `all`."""
    return [result for result in results if group in (ALL, result.split)]


def measure(results: Sequence[Result], metric: str, *, seed: int, resamples: int) -> Measured:
    """The mean of a metric over the tasks where it could be measured, each task weighing the same.

    Seconds are not averaged: they do not depend on the policy alone, and stay with each result and in timing.json.
    """
    values = list(by_task(results, metric).values())
    is_share = metric in BY_NAME and BY_NAME[metric].share
    estimate = stats.mean_estimate if is_share else stats.bootstrap_mean
    return estimate(values, seed=seed, resamples=resamples)


def measures(
    results: Sequence[Result], own: Sequence[str] = (), *, seed: int, resamples: int
) -> dict[str, dict[str, Measured]]:
    """Every summary metric in every group, `own` metrics too, and pass@k where tasks were sampled more than once."""
    return {
        group: {
            metric: measure(in_group(results, group), metric, seed=seed, resamples=resamples)
            for metric in (*BY_NAME, *own)
        }
        | pass_at_k(in_group(results, group), seed=seed, resamples=resamples)
        for group in groups_of(results)
    }


def pass_at_k(results: Sequence[Result], *, seed: int, resamples: int) -> dict[str, Measured]:
    """`pass@k` for each k from 2 to the fewest samples that a task has."""
    outcomes = _samples(results, "solved")
    most = min(map(len, outcomes.values()), default=0)
    return {
        f"pass@{k}": stats.mean_estimate(
            [stats.pass_at(len(one), sum(value == 1 for value in one), k) for one in outcomes.values()],
            seed=seed,
            resamples=resamples,
        )
        for k in range(2, most + 1)
    }


def per_resolved(
    results: Sequence[Result], names: Sequence[str] = SPENT, *, seed: int, resamples: int
) -> dict[str, dict[str, Measured]]:
    """The cost of one resolved task by group: each of `names`, and, for each that the solver also spends, the sum of
    both as `total_...`. Only what was measured is included; what nobody spent is 0.
    """
    return {
        group: {
            name: stats.ratio_estimate(spent, gained, seed=seed, resamples=resamples)
            for name, spent, gained in _spendings(in_group(results, group), names)
        }
        for group in groups_of(results)
    }


def _spendings(results: Sequence[Result], names: Sequence[str]) -> Iterator[tuple[str, list[float], list[float]]]:
    graded = [result for result in results if result.scores.get("solved") is not None]
    gained = [result.scores["solved"] or 0.0 for result in graded]
    for name in names:
        own = [result.scores.get(name) for result in graded]
        if any(value is not None for value in own):
            yield name, [value or 0.0 for value in own], gained
        if f"solver_{name}" in names:
            both = [result.scores.get(f"solver_{name}") for result in graded]
            if any(value is not None for value in (*own, *both)):
                sums = [(one or 0.0) + (other or 0.0) for one, other in zip(own, both, strict=True)]
                yield f"total_{name}", sums, gained


def calls_by_tool(results: Sequence[Result]) -> dict[str, float]:
    """How often each tool was called in an episode, on average."""
    names = sorted({name for result in results for name in result.tools})
    return {name: sum(result.tools.get(name, 0) for result in results) / len(results) for name in names}


def calibration_of(results: Iterable[Result]) -> tuple[CalibrationBin, ...]:
    """The reliability curve of the confidence that was stated with the reports."""
    pairs = [
        (confidence, rank == 1)
        for result in results
        if (confidence := result.scores.get("confidence")) is not None
        and (rank := result.scores.get("reciprocal_rank")) is not None
    ]
    return stats.reliability(pairs)


def by_task(results: Iterable[Result], metric: str) -> dict[str, float]:
    """The mean of a metric over each task's samples, by task."""
    return {task: sum(of_task) / len(of_task) for task, of_task in _samples(results, metric).items()}


def _samples(results: Iterable[Result], metric: str) -> dict[str, list[float]]:
    """The values of a metric by task, where it could be measured."""
    values: dict[str, list[float]] = {}
    for result in results:
        value = result.scores.get(metric)
        if value is not None:
            values.setdefault(result.task_id, []).append(value)
    return values


def compare(
    arm: Sequence[Result], baseline: Sequence[Result], group: str, metric: str, *, seed: int, resamples: int
) -> Comparison | None:
    """The paired difference on the tasks where both arms have the metric; None where there is no such task."""
    ours, theirs = (by_task(in_group(results, group), metric) for results in (arm, baseline))
    shared = sorted(ours.keys() & theirs.keys())
    if not shared:
        return None
    before, after = [theirs[task] for task in shared], [ours[task] for task in shared]
    outcomes = all(value in (0, 1) for value in (*before, *after))
    test = stats.mcnemar([value == 1 for value in before], [value == 1 for value in after]) if outcomes else None
    return Comparison(
        arm=arm[0].arm,
        baseline=baseline[0].arm,
        group=group,
        metric=metric,
        difference=stats.paired_difference(before, after, seed=seed, resamples=resamples),
        better=sum(one < other for one, other in zip(before, after, strict=True)),
        worse=sum(one > other for one, other in zip(before, after, strict=True)),
        mcnemar_p=test.p_value if test is not None else None,
    )


def compare_all(
    results: Mapping[str, Sequence[Result]], baseline: str, *, seed: int, resamples: int
) -> tuple[Comparison, ...]:
    """Every other arm against the baseline, in every group, on the compared metrics."""
    if not results.get(baseline):
        return ()
    found = (
        compare(of_arm, results[baseline], group, metric, seed=seed, resamples=resamples)
        for name, of_arm in results.items()
        if name != baseline and of_arm
        for group in groups_of(of_arm)
        for metric in COMPARED_METRICS
    )
    return tuple(comparison for comparison in found if comparison is not None)

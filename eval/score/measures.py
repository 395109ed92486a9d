"""From scored episodes to figures: means with their intervals, differences between arms, costs, calibration, pass@k."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from gumshoe.eval.records import ALL, ArmSummary, CalibrationBin, Comparison, Measured, Result
from gumshoe.eval.score import stats
from gumshoe.eval.score.metrics import METRICS

__all__ = [
    "OUTCOMES",
    "SPENT_TIME",
    "UNMEASURED",
    "calibration_of",
    "calls_by_tool",
    "compare",
    "compare_all",
    "groups_of",
    "in_group",
    "measured",
    "measures",
    "per_resolved",
]

UNMEASURED = Measured(value=None, low=None, high=None, count=0)
OUTCOMES = ("solved", "official")
"""Whether the bug is repaired in the end: according to our grader, and to the official harness."""
SPENT = ("tokens", "solver_tokens", "cost", "solver_cost")
SPENT_TIME = ("seconds", "solver_seconds")
COMPARED_METRICS = ("valid_calls", "file_recall", "function_recall", "line_recall", "line_f1", "reciprocal_rank")


def measured(arm: ArmSummary, group: str, metric: str) -> Measured:
    """An arm's measure of a metric in a group."""
    return arm.groups.get(group, {}).get(metric, UNMEASURED)


def groups_of(results: Iterable[Result]) -> list[str]:
    """`all`, then each split by name; only `all` where there are no splits."""
    splits = sorted({result.split for result in results} - {ALL})
    return [ALL, *splits]


def in_group(results: Iterable[Result], group: str) -> list[Result]:
    """The results on tasks of one split; all of them for `all`."""
    return [result for result in results if group in (ALL, result.split)]


def measures(
    results: Sequence[Result], own: Mapping[str, str] | None = None, *, seed: int, resamples: int
) -> dict[str, dict[str, Measured]]:
    """Every metric in every group: its mean over the tasks where it could be measured, each task weighing the same; and
    pass@k where tasks were sampled more than once.

    Seconds are not averaged: they do not depend on the policy alone, and stay with each result and in timing.json.

    Args:
        results: those of one arm.
        own: metrics of the config's own, with the unit of each.
        seed: of the bootstrap intervals.
        resamples: of one interval.
    """
    units = {**{metric.name: metric.unit for metric in METRICS}, **(own or {})}
    estimates = {name: stats.mean_estimate if unit == "share" else stats.bootstrap_mean for name, unit in units.items()}
    return {
        group: {
            name: estimate(list(by_task(of_group, name).values()), seed=seed, resamples=resamples)
            for name, estimate in estimates.items()
        }
        | pass_at_k(of_group, seed=seed, resamples=resamples)
        for group in groups_of(results)
        for of_group in [in_group(results, group)]
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

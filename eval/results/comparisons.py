"""Paired differences between arms, on the tasks that both have finished."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gumshoe.eval.records import Comparison, Result
from gumshoe.eval.results import stats
from gumshoe.eval.results.measures import as_measured, by_task, groups_of, in_group

__all__ = ["COMPARED_METRICS", "compare", "compare_all"]

COMPARED_METRICS = ("valid_calls", "file_recall", "function_recall", "line_recall", "line_f1", "reciprocal_rank")


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
        difference=as_measured(stats.paired_difference(before, after, seed=seed, resamples=resamples)),
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

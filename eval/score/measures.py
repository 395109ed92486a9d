"""From scored episodes to figures: means with their intervals, differences between arms, costs, calibration, pass@k.

First what a summary says of `Result`s; below it the intervals and tests, which take plain numbers. Those that draw
samples are methods of `Bootstrap`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean

from gumshoe.eval.records import ALL, ArmSummary, CalibrationBin, Comparison, Measured, Result
from gumshoe.eval.score.metrics import METRICS

UNMEASURED = Measured(value=None, low=None, high=None, count=0)
OUTCOMES = ("solved", "official")
"""Whether the bug is repaired in the end: according to our grader, and to the official harness."""
SPENT = ("tokens", "solver_tokens", "cost", "solver_cost")
SPENT_TIME = ("seconds", "solver_seconds")
BINS = 10
"""Bins of the reliability curve."""
LEVEL = 0.95
"""The share of intervals that hold the true value."""
COMPARED_METRICS = ("valid_calls", "file_recall", "function_recall", "line_recall", "line_f1", "reciprocal_rank")
"""What arms that seek are compared in with the baseline: whether they act validly and find the place. More comparisons
would find more differences by chance; `OUTCOMES` are compared against the solver alone, and `gumshoe compare` compares
all metrics of Gumshoe's that have a mean.
"""


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
    results: Sequence[Result], bootstrap: Bootstrap, own: Mapping[str, str] | None = None
) -> dict[str, dict[str, Measured]]:
    """Every metric in every group: its mean over the tasks where it could be measured, each task weighing the same; and
    pass@k where tasks were sampled more than once.

    Seconds are not averaged: they do not depend on the policy alone, and stay with each result and in timing.json.
    `own` are metrics of the config's own, with the unit of each.
    """
    units = {**{metric.name: metric.unit for metric in METRICS}, **(own or {})}
    estimates = {name: bootstrap.share if unit == "share" else bootstrap.mean for name, unit in units.items()}
    return {
        group: {name: estimate(list(by_task(of_group, name).values())) for name, estimate in estimates.items()}
        | pass_at_k(of_group, bootstrap)
        for group in groups_of(results)
        for of_group in [in_group(results, group)]
    }


def pass_at_k(results: Sequence[Result], bootstrap: Bootstrap) -> dict[str, Measured]:
    """`pass@k` for each k from 2 to the fewest samples that a task has."""
    outcomes = _samples(results, "solved").values()
    most = min(map(len, outcomes), default=0)
    return {
        f"pass@{k}": bootstrap.share([pass_at(len(one), one.count(1), k) for one in outcomes])
        for k in range(2, most + 1)
    }


def per_resolved(
    results: Sequence[Result], bootstrap: Bootstrap, names: Sequence[str] = SPENT
) -> dict[str, dict[str, Measured]]:
    """The cost of one resolved task by group: each of `names`, and, for each that the solver also spends, the sum of
    both as `total_...`. Only what was measured is included; what nobody spent is 0.
    """
    return {
        group: {
            name: bootstrap.ratio(spent, gained) for name, spent, gained in _spendings(in_group(results, group), names)
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
    return reliability(pairs)


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
    arm: Sequence[Result], baseline: Sequence[Result], group: str, metric: str, bootstrap: Bootstrap
) -> Comparison | None:
    """The paired difference on the tasks where both arms have the metric; None where there is no such task."""
    ours, theirs = (by_task(in_group(results, group), metric) for results in (arm, baseline))
    shared = sorted(ours.keys() & theirs.keys())
    if not shared:
        return None
    before, after = [theirs[task] for task in shared], [ours[task] for task in shared]
    outcomes = all(value in (0, 1) for value in (*before, *after))
    p = mcnemar([value == 1 for value in before], [value == 1 for value in after]).p_value if outcomes else None
    return Comparison(
        arm=arm[0].arm,
        baseline=baseline[0].arm,
        group=group,
        metric=metric,
        difference=bootstrap.difference(before, after),
        better=sum(one < other for one, other in zip(before, after, strict=True)),
        worse=sum(one > other for one, other in zip(before, after, strict=True)),
        mcnemar_p=p,
    )


def compare_all(results: Mapping[str, Sequence[Result]], baseline: str, bootstrap: Bootstrap) -> tuple[Comparison, ...]:
    """Every other arm against the baseline, in every group, on the compared metrics."""
    if not results.get(baseline):
        return ()
    found = (
        compare(of_arm, results[baseline], group, metric, bootstrap)
        for name, of_arm in results.items()
        if name != baseline and of_arm
        for group in groups_of(of_arm)
        for metric in COMPARED_METRICS
    )
    return tuple(comparison for comparison in found if comparison is not None)


@dataclass(frozen=True)
class Bootstrap:
    """Means, differences and ratios with intervals from resamples; equal values give equal intervals."""

    seed: int
    resamples: int = 2000

    def share(self, values: Sequence[float]) -> Measured:
        """The mean of `values` from 0 to 1: with Wilson's interval where all are 0 or 1, else a bootstrap interval."""
        if values and all(value in (0, 1) for value in values):
            return wilson(int(sum(values)), len(values))
        return self.mean(values)

    def mean(self, values: Sequence[float]) -> Measured:
        """The mean of `values` with a percentile bootstrap interval. The values' order makes no difference."""
        if not values:
            return UNMEASURED
        import numpy as np

        ordered = np.sort(np.asarray(values, dtype=float))
        generator = np.random.default_rng(self.seed)
        draws = generator.integers(0, len(ordered), size=(self.resamples, len(ordered)))
        means = ordered[draws].mean(axis=1)
        tail = (1 - LEVEL) / 2
        low, high = np.quantile(means, [tail, 1 - tail])
        mean = fmean(ordered.tolist())
        # Equal values: summing in another order must not put the mean outside its interval by a rounding error.
        return Measured(value=mean, low=min(float(low), mean), high=max(float(high), mean), count=len(ordered))

    def difference(self, first: Sequence[float], second: Sequence[float]) -> Measured:
        """The mean of `second - first` over pairs, with a bootstrap interval over the pairs."""
        return self.mean([after - before for before, after in zip(first, second, strict=True)])

    def ratio(self, spent: Sequence[float], gained: Sequence[float]) -> Measured:
        """The cost per unit gained: the sum of `spent` over the sum of `gained`, with a bootstrap interval over the
        pairs. The pairs' order makes no difference.

        None where nothing was gained. The upper end is None where so many resamples gain nothing that it has no bound.
        """
        pairs = sorted(zip(spent, gained, strict=True))
        total = math.fsum(one for _, one in pairs)
        if not total:
            return Measured(value=None, low=None, high=None, count=len(pairs))
        import numpy as np

        cost, gain = (np.asarray(side, dtype=float) for side in zip(*pairs, strict=True))
        draws = np.random.default_rng(self.seed).integers(0, len(pairs), size=(self.resamples, len(pairs)))
        costs, gains = cost[draws].sum(axis=1), gain[draws].sum(axis=1)
        ratios = np.sort(np.divide(costs, gains, out=np.full(self.resamples, np.inf), where=gains > 0))
        tail = (1 - LEVEL) / 2
        # No interpolation: between a number and infinity there is nothing.
        low = float(ratios[math.floor(tail * (self.resamples - 1))])
        high = float(ratios[math.ceil((1 - tail) * (self.resamples - 1))])
        ratio = math.fsum(one for one, _ in pairs) / total
        bounded = None if math.isinf(high) else max(high, ratio)
        return Measured(value=ratio, low=min(low, ratio), high=bounded, count=len(pairs))


@dataclass(frozen=True)
class McNemar:
    """The exact test on paired yes/no outcomes: how often only the first or the second was yes, and the p value."""

    only_first: int
    only_second: int
    p_value: float


def wilson(successes: int, count: int) -> Measured:
    """A share with Wilson's score interval, which stays in [0, 1] and does not collapse at 0 and 1."""
    if count == 0:
        return UNMEASURED
    z = NormalDist().inv_cdf(0.5 + LEVEL / 2)
    share = successes / count
    shrunk = 1 + z * z / count
    center = (share + z * z / (2 * count)) / shrunk
    half = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count)) / shrunk
    # At the ends the formula gives the share itself, give or take rounding.
    low = 0.0 if successes == 0 else center - half
    high = 1.0 if successes == count else center + half
    return Measured(value=share, low=low, high=high, count=count)


def mcnemar(first: Sequence[bool], second: Sequence[bool]) -> McNemar:
    """McNemar's exact two-sided test: do two arms succeed equally often on the same tasks?"""
    pairs = list(zip(first, second, strict=True))
    only_first = sum(one and not other for one, other in pairs)
    only_second = sum(other and not one for one, other in pairs)
    discordant = only_first + only_second
    tail = sum(math.comb(discordant, k) for k in range(min(only_first, only_second) + 1))
    return McNemar(only_first, only_second, min(1.0, 2 * tail / 2**discordant))


def pass_at(count: int, successes: int, k: int) -> float:
    """An unbiased estimate of the chance that at least one of `k` samples succeeds, from `successes` among `count`."""
    return 1 - math.comb(count - successes, k) / math.comb(count, k)


def reliability(pairs: Iterable[tuple[float, bool]]) -> tuple[CalibrationBin, ...]:
    """The reliability curve of (confidence, right) pairs: ten bins of equal width, empty ones left out.

    A confidence of 1 belongs to the last bin. The order of the pairs makes no difference.
    """
    grouped: dict[int, list[tuple[float, bool]]] = {}
    for confidence, right in pairs:
        grouped.setdefault(min(int(confidence * BINS), BINS - 1), []).append((confidence, right))
    return tuple(
        CalibrationBin(
            low=number / BINS,
            high=(number + 1) / BINS,
            confidence=fmean(sorted(confidence for confidence, _ in of_bin)),
            right=sum(right for _, right in of_bin) / len(of_bin),
            count=len(of_bin),
        )
        for number, of_bin in sorted(grouped.items())
    )


def expected_error(curve: Sequence[CalibrationBin]) -> float | None:
    """The expected calibration error: the gap between confidence and truth, weighted by count; None without bins."""
    total = sum(point.count for point in curve)
    return sum(point.count * abs(point.confidence - point.right) for point in curve) / total if total else None

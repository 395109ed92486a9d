"""Intervals, paired comparisons and calibration: small functions of plain numbers, seeded where they draw samples."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean

from gumshoe.eval.records import CalibrationBin, Measured

__all__ = [
    "McNemar",
    "bootstrap_mean",
    "expected_error",
    "mcnemar",
    "mean_estimate",
    "paired_difference",
    "pass_at",
    "ratio_estimate",
    "reliability",
    "wilson",
]


LEVEL = 0.95
"""The share of intervals that hold the true value."""


@dataclass(frozen=True)
class McNemar:
    """The exact test on paired yes/no outcomes: how often only the first or the second was yes, and the p value."""

    only_first: int
    only_second: int
    p_value: float


def mean_estimate(values: Sequence[float], *, seed: int, resamples: int = 2000) -> Measured:
    """The mean of `values`: with Wilson's interval where all are 0 or 1 (a share), else with a bootstrap interval."""
    if values and all(value in (0, 1) for value in values):
        return wilson(sum(1 for value in values if value), len(values))
    return bootstrap_mean(values, seed=seed, resamples=resamples)


def wilson(successes: int, count: int) -> Measured:
    """A share with Wilson's score interval, which stays in [0, 1] and does not collapse at 0 and 1."""
    if not 0 <= successes <= count:
        raise ValueError(f"{successes} successes of {count}")
    if count == 0:
        return Measured(value=None, low=None, high=None, count=0)
    z = NormalDist().inv_cdf(0.5 + LEVEL / 2)
    share = successes / count
    shrunk = 1 + z * z / count
    center = (share + z * z / (2 * count)) / shrunk
    half = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count)) / shrunk
    # At the ends the formula gives the share itself, give or take rounding.
    low = 0.0 if successes == 0 else center - half
    high = 1.0 if successes == count else center + half
    return Measured(value=share, low=low, high=high, count=count)


def bootstrap_mean(values: Sequence[float], *, seed: int, resamples: int = 2000) -> Measured:
    """The mean of `values` with a percentile bootstrap interval. The values' order makes no difference."""
    if not values:
        return Measured(value=None, low=None, high=None, count=0)
    import numpy as np

    ordered = np.sort(np.asarray(values, dtype=float))
    generator = np.random.default_rng(seed)
    draws = generator.integers(0, len(ordered), size=(resamples, len(ordered)))
    means = ordered[draws].mean(axis=1)
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    mean = fmean(ordered.tolist())
    # Equal values: summing in another order must not put the mean outside its interval by a rounding error.
    return Measured(value=mean, low=min(float(low), mean), high=max(float(high), mean), count=len(ordered))


def paired_difference(first: Sequence[float], second: Sequence[float], *, seed: int, resamples: int = 2000) -> Measured:
    """The mean of `second - first` over pairs, with a bootstrap interval over the pairs."""
    differences = [after - before for before, after in zip(first, second, strict=True)]
    return bootstrap_mean(differences, seed=seed, resamples=resamples)


def mcnemar(first: Sequence[bool], second: Sequence[bool]) -> McNemar:
    """McNemar's exact two-sided test: do two arms succeed equally often on the same tasks?"""
    pairs = list(zip(first, second, strict=True))
    only_first = sum(1 for one, other in pairs if one and not other)
    only_second = sum(1 for one, other in pairs if other and not one)
    discordant = only_first + only_second
    fewer = min(only_first, only_second)
    tail = sum(math.comb(discordant, k) for k in range(fewer + 1))
    return McNemar(only_first, only_second, min(1.0, 2 * tail / 2**discordant))


def pass_at(count: int, successes: int, k: int) -> float:
    """An unbiased estimate of the chance that at least one of `k` samples succeeds, from `successes` among `count`.

    Raises ValueError where there are fewer samples than `k`, or the numbers make no sense.
    """
    if not (0 <= successes <= count and 1 <= k <= count):
        raise ValueError(f"pass@{k} of {successes} successes in {count} samples")
    return 1 - math.comb(count - successes, k) / math.comb(count, k)


def ratio_estimate(spent: Sequence[float], gained: Sequence[float], *, seed: int, resamples: int = 2000) -> Measured:
    """The cost per unit gained: the sum of `spent` over the sum of `gained`, with a bootstrap interval over the pairs.
    The pairs' order makes no difference.

    None where nothing was gained. The upper end is None where so many resamples gain nothing that it has no bound.
    """
    pairs = sorted(zip(spent, gained, strict=True))
    total = math.fsum(one for _, one in pairs)
    if not total:
        return Measured(value=None, low=None, high=None, count=len(pairs))
    import numpy as np

    cost, gain = (np.asarray(side, dtype=float) for side in zip(*pairs, strict=True))
    draws = np.random.default_rng(seed).integers(0, len(pairs), size=(resamples, len(pairs)))
    costs, gains = cost[draws].sum(axis=1), gain[draws].sum(axis=1)
    ratios = np.sort(np.divide(costs, gains, out=np.full(resamples, np.inf), where=gains > 0))
    tail = (1 - LEVEL) / 2
    # No interpolation: between a number and infinity there is nothing.
    low = float(ratios[math.floor(tail * (resamples - 1))])
    high = float(ratios[math.ceil((1 - tail) * (resamples - 1))])
    ratio = math.fsum(one for one, _ in pairs) / total
    bounded = None if math.isinf(high) else max(high, ratio)
    return Measured(value=ratio, low=min(low, ratio), high=bounded, count=len(pairs))


def reliability(pairs: Iterable[tuple[float, bool]], bins: int = 10) -> tuple[CalibrationBin, ...]:
    """The reliability curve of (confidence, right) pairs: bins of equal width, empty ones left out.

    A confidence of 1 belongs to the last bin. The order of the pairs makes no difference.
    """
    grouped: dict[int, list[tuple[float, bool]]] = {}
    for confidence, right in pairs:
        grouped.setdefault(min(int(confidence * bins), bins - 1), []).append((confidence, right))
    return tuple(
        CalibrationBin(
            low=number / bins,
            high=(number + 1) / bins,
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

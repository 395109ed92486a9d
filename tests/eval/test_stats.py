"""Intervals and tests, against scipy and statsmodels, and their properties."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gumshoe.eval.records import Measured
from gumshoe.eval.results.stats import bootstrap_mean, mcnemar, mean_estimate, paired_difference, wilson

VALUES = st.lists(st.floats(min_value=-5, max_value=5), min_size=1, max_size=30)
PAIRS = st.lists(st.tuples(st.booleans(), st.booleans()), max_size=60)


@given(count=st.integers(1, 500), data=st.data())
def test_wilson_agrees_with_statsmodels_and_is_symmetric(count: int, data: st.DataObject) -> None:
    from statsmodels.stats.proportion import proportion_confint

    successes = data.draw(st.integers(0, count))
    ours, mirrored = wilson(successes, count), wilson(count - successes, count)
    assert ours.value == successes / count
    assert (ours.low, ours.high) == pytest.approx(proportion_confint(successes, count, method="wilson"), abs=1e-12)
    assert mirrored.high == pytest.approx(1 - (ours.low or 0.0))


def test_nothing_measured_is_none_and_not_zero() -> None:
    unknown = Measured(value=None, low=None, high=None, count=0)
    assert wilson(0, 0) == unknown
    assert bootstrap_mean([], seed=0) == unknown
    assert mean_estimate([], seed=0) == unknown


@pytest.mark.parametrize(("successes", "count"), [(-1, 3), (4, 3)])
def test_impossible_counts_are_refused(successes: int, count: int) -> None:
    with pytest.raises(ValueError, match="successes of"):
        wilson(successes, count)


def test_bootstrap_agrees_with_scipy() -> None:
    import numpy as np
    from scipy import stats

    values = [0.0, 0.1, 0.5, 0.5, 0.9, 1.0, 0.3, 0.7, 0.2, 0.65]
    ours = bootstrap_mean(values, seed=1, resamples=20000)
    theirs = stats.bootstrap((np.array(values),), np.mean, n_resamples=20000, method="percentile", rng=2)
    interval = theirs.confidence_interval
    assert (ours.low, ours.high) == pytest.approx((interval.low, interval.high), abs=0.01)


@given(values=VALUES, seed=st.integers(0, 5))
def test_bootstrap_holds_the_mean_and_does_not_mind_the_order(values: list[float], seed: int) -> None:
    ours = bootstrap_mean(values, seed=seed, resamples=200)
    assert ours.low is not None
    assert ours.high is not None
    assert ours.value is not None
    assert min(values) - 1e-9 <= ours.low <= ours.value <= ours.high <= max(values) + 1e-9
    shuffled = random.Random(seed).sample(values, len(values))
    assert bootstrap_mean(shuffled, seed=seed, resamples=200) == ours


def test_yes_or_no_gets_wilson_and_shares_get_the_bootstrap() -> None:
    assert mean_estimate([1.0, 0.0], seed=0) == wilson(1, 2)
    assert mean_estimate([1.0, 0.5], seed=0) == bootstrap_mean([1.0, 0.5], seed=0)


@given(pairs=st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=20))
def test_a_paired_difference_turns_its_sign_with_the_arms(pairs: list[tuple[float, float]]) -> None:
    first, second = [one for one, _ in pairs], [other for _, other in pairs]
    there = paired_difference(first, second, seed=0, resamples=200)
    back = paired_difference(second, first, seed=0, resamples=200)
    assert there.value == pytest.approx(-(back.value or 0.0))
    assert paired_difference(first, first, seed=0, resamples=200) == Measured(
        value=0.0, low=0.0, high=0.0, count=len(pairs)
    )


@given(pairs=PAIRS)
def test_mcnemar_agrees_with_statsmodels_and_is_symmetric(pairs: list[tuple[bool, bool]]) -> None:
    from statsmodels.stats.contingency_tables import mcnemar as theirs

    first, second = [one for one, _ in pairs], [other for _, other in pairs]
    ours, mirrored = mcnemar(first, second), mcnemar(second, first)
    table = [[0, ours.only_first], [ours.only_second, 0]]
    test: Any = theirs(table, exact=True)
    expected = test.pvalue if ours.only_first + ours.only_second else 1.0
    assert ours.p_value == pytest.approx(expected)
    assert (mirrored.only_first, mirrored.p_value) == (ours.only_second, ours.p_value)

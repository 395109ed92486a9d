"""Conduct, calibration, cost and pass@k: by hand, and what must hold for all of them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gumshoe.eval.records import Result
from gumshoe.eval.results.measures import calibration_of, calls_by_tool, measures, per_resolved
from gumshoe.eval.results.stats import pass_at, ratio_estimate
from gumshoe.eval.scorers.calibration import expected_error, reliability
from gumshoe.eval.scorers.conduct import Conduct
from gumshoe.records import Trajectory
from support.eval.made import make_oracle


def conduct(trajectory: Trajectory, name: str) -> float | None:
    return Conduct(name).score(trajectory, make_oracle()).value


# --- conduct ------------------------------------------------------------------------------------------------------


# --- calibration --------------------------------------------------------------------------------------------------


def test_a_reliability_curve_by_hand() -> None:
    """Bins of a fifth: 0.1 and 0.15 are together, 1.0 is in the last."""
    curve = reliability([(0.1, False), (0.15, True), (0.5, True), (1.0, True), (0.9, False)], bins=5)
    assert [(point.low, point.count) for point in curve] == [(0.0, 2), (0.4, 1), (0.8, 2)]
    assert [point.confidence for point in curve] == pytest.approx([0.125, 0.5, 0.95])
    assert [point.right for point in curve] == [0.5, 1.0, 0.5]
    assert expected_error(curve) == pytest.approx((2 * 0.375 + 1 * 0.5 + 2 * 0.45) / 5)
    assert expected_error(reliability([])) is None


# --- pass@k, and what a repaired bug has cost ---------------------------------------------------------------------


@given(count=st.integers(1, 7), data=st.data())
def test_pass_at_k_is_what_drawing_k_samples_gives(count: int, data: st.DataObject) -> None:
    successes, k = data.draw(st.integers(0, count)), data.draw(st.integers(1, count))
    draws = list(itertools.combinations([True] * successes + [False] * (count - successes), k))
    assert pass_at(count, successes, k) == pytest.approx(sum(map(any, draws)) / len(draws))


def test_a_ratio_agrees_with_scipy() -> None:
    import numpy as np
    from scipy.stats import bootstrap

    rng = np.random.default_rng(1)
    spent, gained = rng.uniform(50, 150, 60), (rng.random(60) < 0.7).astype(float)
    ours = ratio_estimate(spent.tolist(), gained.tolist(), seed=0, resamples=20000)

    def ratio(one: Any, other: Any, axis: int = -1) -> Any:
        return one.sum(axis=axis) / other.sum(axis=axis)

    theirs = bootstrap(
        (spent, gained), ratio, paired=True, n_resamples=20000, method="percentile", rng=2, vectorized=True
    ).confidence_interval
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), rel=0.02)


def test_a_ratio_without_bound_says_so() -> None:
    """One success in three: a third of the resamples has none."""
    ours = ratio_estimate([1.0, 2.0, 3.0], [0.0, 0.0, 1.0], seed=0)
    assert (ours.value, ours.high) == (6.0, None)


def a_result(task: str, sample: int = 0, **scores: float | None) -> Result:
    return Result(arm="a", task_id=task, sample=sample, split="all", trajectory="x", stop=None, scores=scores)


def value_of(results: Sequence[Result], name: str) -> float | None:
    return per_resolved(results, seed=0, resamples=100)["all"][name].value


def test_what_a_repaired_bug_has_cost_counts_the_failures_too() -> None:
    results = [
        a_result("1", solved=1.0, tokens=100.0, solver_tokens=10.0),
        a_result("2", solved=0.0, tokens=300.0, solver_tokens=None),
        a_result("3", solved=None, tokens=999.0, solver_tokens=999.0),
    ]
    assert (value_of(results, "tokens"), value_of(results, "solver_tokens")) == (400.0, 10.0)
    assert value_of(results, "total_tokens") == 410.0
    assert "cost" not in per_resolved(results, seed=0, resamples=100)["all"]


def test_samples_give_pass_at_k_for_as_many_as_every_task_has() -> None:
    results = [a_result("1", sample, solved=float(sample == 0)) for sample in range(3)]
    results += [a_result("2", sample, solved=0.0) for sample in range(2)]
    found = measures(results, seed=0, resamples=100)["all"]
    assert found["solved"].value == pytest.approx((1 / 3 + 0) / 2)
    assert found["pass@2"].value == pytest.approx((pass_at(3, 1, 2) + 0) / 2)
    assert "pass@3" not in found


def test_tools_and_calibration_of_an_arm_by_hand() -> None:
    one = a_result("1", confidence=0.9, top1_hit=1.0).model_copy(update={"tools": {"view": 2}})
    other = a_result("2", confidence=0.9, top1_hit=0.0).model_copy(update={"tools": {"pdb": 1}})
    assert calls_by_tool([one, other]) == {"pdb": 0.5, "view": 1.0}
    (point,) = calibration_of([one, other, a_result("3", confidence=None)])
    assert (point.confidence, point.right, point.count) == (pytest.approx(0.9), 0.5, 2)

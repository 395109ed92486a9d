"""Conduct, calibration, cost and pass@k: by hand, and what must hold for all of them."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gumshoe.eval.records import Result
from gumshoe.eval.results.measures import calibration_of, calls_by_tool, measures, per_resolved
from gumshoe.eval.results.stats import pass_at, ratio_estimate
from gumshoe.eval.scorers.calibration import Brier, expected_error, reliability, top1_hit
from gumshoe.eval.scorers.conduct import Conduct, tool_counts
from gumshoe.records import Trajectory
from support.eval.made import make_oracle, make_pack, make_step, make_trajectory

SHOWN = {"path": "cart.py", "start": 7, "end": 9, "lines": ["    def total(self):", "        tax = 1", ""]}
VIEW = "cart.py 7-9 of 20 lines\n   7     def total(self):\n   8         tax = 1\n   9"
PAIRS = st.lists(st.tuples(st.floats(0, 1), st.booleans()), max_size=40)
SPENDINGS = st.lists(st.tuples(st.floats(0, 1e4), st.sampled_from([0.0, 0.5, 1.0])), min_size=1, max_size=25)


def conduct(trajectory: Trajectory, name: str) -> float | None:
    return Conduct(name).score(trajectory, make_oracle()).value


# --- conduct ------------------------------------------------------------------------------------------------------


def test_the_use_of_the_debugger_by_hand() -> None:
    steps = [make_step(0), make_step(1, tool="pdb"), make_step(2, tool="pdb")]
    assert conduct(make_trajectory(steps), "debugged") == 1.0
    assert conduct(make_trajectory(steps[:1]), "debugged") == 0.0
    assert tool_counts(make_trajectory(steps)) == {"view": 1, "pdb": 2}


@given(paths=st.lists(st.sampled_from("abc"), max_size=10))
def test_repeats_do_not_mind_the_order(paths: list[str]) -> None:
    steps = [make_step(index, arguments={"path": path}) for index, path in enumerate(paths)]
    repeats = conduct(make_trajectory(steps), "repeats")
    assert repeats == (None if not paths else pytest.approx(1 - len(set(paths)) / len(paths)))
    assert conduct(make_trajectory(steps[::-1]), "repeats") == repeats


# --- calibration --------------------------------------------------------------------------------------------------


def test_a_reliability_curve_by_hand() -> None:
    """Bins of a fifth: 0.1 and 0.15 are together, 1.0 is in the last."""
    curve = reliability([(0.1, False), (0.15, True), (0.5, True), (1.0, True), (0.9, False)], bins=5)
    assert [(point.low, point.count) for point in curve] == [(0.0, 2), (0.4, 1), (0.8, 2)]
    assert [point.confidence for point in curve] == pytest.approx([0.125, 0.5, 0.95])
    assert [point.right for point in curve] == [0.5, 1.0, 0.5]
    assert expected_error(curve) == pytest.approx((2 * 0.375 + 1 * 0.5 + 2 * 0.45) / 5)
    assert expected_error(reliability([])) is None


@given(pairs=PAIRS, bins=st.integers(1, 12))
def test_a_reliability_curve_counts_everything_once_in_any_order(pairs: list[tuple[float, bool]], bins: int) -> None:
    curve = reliability(pairs, bins)
    assert sum(point.count for point in curve) == len(pairs)
    assert sum(point.count * point.right for point in curve) == pytest.approx(sum(right for _, right in pairs))
    for point in curve:
        assert point.low - 1e-9 <= point.confidence <= point.high + 1e-9
        assert 0 <= point.right <= 1
    assert reliability(random.Random(0).sample(pairs, len(pairs)), bins) == curve
    error = expected_error(curve)
    assert error is None or 0 <= error <= 1


@given(confidence=st.floats(0, 1))
def test_brier_is_within_bounds_and_symmetric(confidence: float) -> None:
    """Saying c where it is right costs what saying 1 - c costs where it is wrong."""

    def brier(sure: float, line: int) -> float:
        trajectory = make_trajectory([make_step(0, confidence=sure)], make_pack(("cart.py", line, line)))
        value = Brier().score(trajectory, make_oracle()).value
        assert value is not None
        return value

    assert 0 <= brier(confidence, 8) <= 1
    assert brier(confidence, 8) == pytest.approx(brier(1 - confidence, 1))
    assert top1_hit(make_trajectory(), make_oracle()) is None


# --- pass@k, and what a repaired bug has cost ---------------------------------------------------------------------


@given(count=st.integers(1, 7), data=st.data())
def test_pass_at_k_is_what_drawing_k_samples_gives(count: int, data: st.DataObject) -> None:
    successes, k = data.draw(st.integers(0, count)), data.draw(st.integers(1, count))
    draws = list(itertools.combinations([True] * successes + [False] * (count - successes), k))
    assert pass_at(count, successes, k) == pytest.approx(sum(map(any, draws)) / len(draws))


def test_pass_at_k_by_hand() -> None:
    assert pass_at(10, 3, 1) == pytest.approx(0.3)
    assert pass_at(4, 2, 2) == pytest.approx(1 - 1 / 6)
    for wrong in ((3, 1, 4), (3, 4, 1), (3, 1, 0)):
        with pytest.raises(ValueError, match="pass@"):
            pass_at(*wrong)


@given(pairs=SPENDINGS, seed=st.integers(0, 3))
def test_a_ratio_is_within_its_interval_in_any_order(pairs: list[tuple[float, float]], seed: int) -> None:
    spent, gained = [one for one, _ in pairs], [other for _, other in pairs]
    ours = ratio_estimate(spent, gained, seed=seed, resamples=200)
    if not sum(gained):
        assert (ours.value, ours.low, ours.high) == (None, None, None)
        return
    assert ours.value == pytest.approx(sum(spent) / sum(gained))
    assert ours.low is not None
    assert ours.value is not None
    assert 0 <= ours.low <= ours.value
    assert ours.high is None or ours.value <= ours.high
    shuffled = random.Random(seed).sample(pairs, len(pairs))
    again = ratio_estimate([one for one, _ in shuffled], [other for _, other in shuffled], seed=seed, resamples=200)
    assert again == ours


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

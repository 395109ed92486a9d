"""From scored episodes to measures: means, intervals, groups, comparisons, calibration, pass@k, what a repair costs."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gumshoe.errors import ConfigError
from gumshoe.eval.records import ALL, Measured, Result
from gumshoe.eval.results import score_trajectory
from gumshoe.eval.score.buggy_code import BuggyCode
from gumshoe.eval.score.measures import (
    Bootstrap,
    calibration_of,
    calls_by_tool,
    compare,
    expected_error,
    groups_of,
    mcnemar,
    measures,
    pass_at,
    per_resolved,
    reliability,
    wilson,
)
from gumshoe.eval.swebench import HarnessReport, with_official
from gumshoe.records import Oracle, Score, StopReason, Trajectory
from support.eval.made import make_oracle, make_task, make_trajectory


def result(
    arm: str,
    task: str,
    value: float | None = None,
    *,
    split: str = "heldout_bugs",
    sample: int = 0,
    **scores: float | None,
) -> Result:
    """A result with these scores, or with `value` as its only one, the recall of lines."""
    return Result(
        arm=arm,
        task_id=task,
        sample=sample,
        split=split,
        trajectory=f"{task}#{sample}",
        stop=StopReason.REPORTED,
        scores=scores or {"line_recall": value},
    )


RESULTS = st.lists(
    st.builds(
        lambda task, value, split: result("a", f"t{task}", value, split=split),
        st.integers(0, 9),
        st.none() | st.sampled_from([0.0, 1.0]) | st.floats(0, 1),
        st.sampled_from(["heldout_bugs", "heldout_projects", ALL]),
    ),
    min_size=1,
    max_size=25,
)


def test_a_metric_that_fails_is_named() -> None:
    class Bare:
        name = "bare"

        def score(self, trajectory: Trajectory, oracle: Oracle) -> Score:
            return cast("Score", 0.5)

    class Broken:
        name = "broken"

        def score(self, trajectory: Trajectory, oracle: Oracle) -> Score:
            raise ZeroDivisionError(trajectory.id)

    episode, oracle, code = make_trajectory(), make_oracle(), BuggyCode([make_task()])
    with pytest.raises(ConfigError, match="metric 'bare' must return a Score, not float"):
        score_trajectory("arm", episode, oracle, code, [Bare()])
    with pytest.raises(ZeroDivisionError) as caught:
        score_trajectory("arm", episode, oracle, code, [Broken()])
    assert caught.value.__notes__ == [f"in the metric broken, on episode {episode.id} of task {episode.task.id}"]


def test_means_by_hand() -> None:
    """Two samples of one task weigh as one task; what was not measured does not count."""
    rows = [result("a", "t1", 1.0), result("a", "t1", 0.0, sample=1), result("a", "t2", None), result("a", "t3", 0.1)]
    measured = measures(rows, Bootstrap(0, 200))
    line = measured[ALL]["line_recall"]
    assert (line.value, line.count) == (pytest.approx(0.3), 2)
    assert measured[ALL]["grounding"].value is None
    assert measured["heldout_bugs"] == measured[ALL]


@given(rows=RESULTS)
def test_measures_stay_within_bounds_and_do_not_mind_the_order(rows: list[Result]) -> None:
    measured = measures(rows, Bootstrap(0, 100))
    assert list(measured) == groups_of(rows)
    for group in measured.values():
        one = group["line_recall"]
        if one.value is not None and one.low is not None and one.high is not None:
            assert 0 <= one.low <= one.value <= one.high <= 1
    shuffled = random.Random(1).sample(rows, len(rows))
    again = measures(shuffled, Bootstrap(0, 100))
    for group, metrics in measured.items():
        assert again[group]["line_recall"].count == metrics["line_recall"].count
        assert again[group]["line_recall"].value == pytest.approx(metrics["line_recall"].value)


def test_comparisons_by_hand() -> None:
    """Four shared tasks: better on two, worse on none. Shares have no McNemar test."""
    before = [result("base", f"t{number}", value) for number, value in enumerate([0.0, 0.0, 1.0, 0.0, 1.0])]
    after = [result("arm", f"t{number}", value) for number, value in enumerate([1.0, 1.0, 1.0, 0.0])]
    after.append(result("arm", "t9", 1.0))
    found = compare(after, before, ALL, "line_recall", Bootstrap(0, 500))
    assert found is not None
    assert (found.difference.value, found.difference.count) == (0.5, 4)
    assert (found.better, found.worse, found.mcnemar_p) == (2, 0, 0.5)
    found = compare([result("a", "t", 0.5)], [result("b", "t", 0.25)], ALL, "line_recall", Bootstrap(0, 100))
    assert found is not None
    assert (found.mcnemar_p, found.difference.value) == (None, 0.25)
    assert compare([result("a", "t", 0.5)], [result("b", "u", 0.2)], ALL, "line_recall", Bootstrap(0, 100)) is None


def test_a_reliability_curve_by_hand() -> None:
    """0.91 and 0.99 are together, 1.0 is in the last bin."""
    curve = reliability([(0.11, False), (0.91, True), (0.99, False), (1.0, True)])
    assert [(point.low, point.count, point.right) for point in curve] == [(0.1, 1, 0.0), (0.9, 3, 2 / 3)]
    assert [point.confidence for point in curve] == pytest.approx([0.11, 2.9 / 3])
    assert expected_error(curve) == pytest.approx((0.11 + 3 * abs(2.9 / 3 - 2 / 3)) / 4)
    assert expected_error(reliability([])) is None


@given(count=st.integers(1, 7), data=st.data())
def test_pass_at_k_is_what_drawing_k_samples_gives(count: int, data: st.DataObject) -> None:
    successes, k = data.draw(st.integers(0, count)), data.draw(st.integers(1, count))
    draws = list(itertools.combinations([True] * successes + [False] * (count - successes), k))
    assert pass_at(count, successes, k) == pytest.approx(sum(map(any, draws)) / len(draws))


def test_costs_samples_tools_and_calibration_of_an_arm_by_hand() -> None:
    """Failures cost, too; what was not graded does not count."""
    results = [
        result("a", "1", solved=1.0, tokens=100.0, solver_tokens=10.0),
        result("a", "2", solved=0.0, tokens=300.0, solver_tokens=None),
        result("a", "3", solved=None, tokens=999.0, solver_tokens=999.0),
    ]
    spent = {name: one.value for name, one in per_resolved(results, Bootstrap(0, 100))[ALL].items()}
    assert spent == {"tokens": 400.0, "solver_tokens": 10.0, "total_tokens": 410.0}
    results = [result("a", "1", sample=sample, solved=float(sample == 0)) for sample in range(3)]
    results += [result("a", "2", sample=sample, solved=0.0) for sample in range(2)]
    found = measures(results, Bootstrap(0, 100))[ALL]
    assert found["solved"].value == pytest.approx((1 / 3 + 0) / 2)
    assert found["pass@2"].value == pytest.approx((pass_at(3, 1, 2) + 0) / 2)
    assert "pass@3" not in found
    one = result("a", "1", confidence=0.9, reciprocal_rank=1.0).model_copy(update={"tools": {"view": 2}})
    other = result("a", "2", confidence=0.9, reciprocal_rank=0.5).model_copy(update={"tools": {"pdb": 1}})
    assert calls_by_tool([one, other]) == {"pdb": 0.5, "view": 1.0}
    (point,) = calibration_of([one, other, result("a", "3", confidence=None)])
    assert (point.confidence, point.right, point.count) == (pytest.approx(0.9), 0.5, 2)


def test_intervals_agree_with_scipy() -> None:
    import numpy as np
    from scipy.stats import bootstrap

    options: dict[str, Any] = {"n_resamples": 20000, "method": "percentile", "rng": 2}
    values = [0.0, 0.1, 0.5, 0.5, 0.9, 1.0, 0.3, 0.7, 0.2, 0.65]
    ours = Bootstrap(1, 20000).mean(values)
    theirs = bootstrap((np.array(values),), np.mean, **options).confidence_interval
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=0.01)

    def ratio(one: Any, other: Any, axis: int = -1) -> Any:
        return one.sum(axis=axis) / other.sum(axis=axis)

    rng = np.random.default_rng(1)
    spent, gained = rng.uniform(50, 150, 60), (rng.random(60) < 0.7).astype(float)
    ours = Bootstrap(0, 20000).ratio(spent.tolist(), gained.tolist())
    theirs = bootstrap((spent, gained), ratio, paired=True, vectorized=True, **options).confidence_interval
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), rel=0.02)


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


def test_what_is_not_measured_and_what_is_a_share() -> None:
    unknown = Measured(value=None, low=None, high=None, count=0)
    assert wilson(0, 0) == unknown
    assert Bootstrap(0).mean([]) == unknown
    assert Bootstrap(0).share([]) == unknown
    # One success in three: a third of the resamples has none.
    without_bound = Bootstrap(0).ratio([1.0, 2.0, 3.0], [0.0, 0.0, 1.0])
    assert (without_bound.value, without_bound.high) == (6.0, None)
    assert Bootstrap(0).share([1.0, 0.0]) == wilson(1, 2)
    assert Bootstrap(0).share([1.0, 0.5]) == Bootstrap(0).mean([1.0, 0.5])


@given(values=VALUES, seed=st.integers(0, 5))
def test_bootstrap_holds_the_mean_and_does_not_mind_the_order(values: list[float], seed: int) -> None:
    ours = Bootstrap(seed, 200).mean(values)
    assert ours.low is not None
    assert ours.high is not None
    assert ours.value is not None
    assert min(values) - 1e-9 <= ours.low <= ours.value <= ours.high <= max(values) + 1e-9
    shuffled = random.Random(seed).sample(values, len(values))
    assert Bootstrap(seed, 200).mean(shuffled) == ours


@given(pairs=st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=20))
def test_a_paired_difference_turns_its_sign_with_the_arms(pairs: list[tuple[float, float]]) -> None:
    first, second = [one for one, _ in pairs], [other for _, other in pairs]
    there = Bootstrap(0, 200).difference(first, second)
    back = Bootstrap(0, 200).difference(second, first)
    assert there.value == pytest.approx(-(back.value or 0.0))
    assert Bootstrap(0, 200).difference(first, first) == Measured(value=0.0, low=0.0, high=0.0, count=len(pairs))


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


def test_what_the_harness_blames_on_the_environment_has_no_score() -> None:
    results = [result("arm", task, solved=0.0) for task in ("a", "b", "c")]
    report = HarnessReport(Path(), Path(), "run", {"a": "unresolved", "b": "unresolved"}, outside=("b",))
    scored = with_official({"arm": results}, {"arm": report})["arm"]
    assert [one.scores.get("official", "none") for one in scored] == [0.0, None, "none"]

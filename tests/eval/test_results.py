"""From scored episodes to a summary: means, groups, paired comparisons."""

from __future__ import annotations

import random
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gumshoe.errors import ConfigError
from gumshoe.eval.records import ALL, Result
from gumshoe.eval.results.measures import compare, compare_all, groups_of, measures
from gumshoe.eval.scorers import make_scorers
from gumshoe.eval.scorers.sources import Sources
from gumshoe.eval.scoring import score_trajectory
from gumshoe.records import Oracle, Score, StopReason, Trajectory
from support.eval.made import make_oracle, make_pack, make_step, make_task, make_trajectory


def result(arm: str, task: str, value: float | None, *, split: str = "heldout_bugs", sample: int = 0) -> Result:
    return Result(
        arm=arm,
        task_id=task,
        sample=sample,
        split=split,
        trajectory=f"{task}#{sample}",
        stop=StopReason.REPORTED,
        scores={"line_recall": value},
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


def test_scores_of_the_trajectory_are_kept_beside_ours() -> None:
    task = make_task()
    trajectory = make_trajectory([make_step()], make_pack(("cart.py", 8, 8)), task=task)
    trajectory = trajectory.model_copy(update={"scores": (Score(name="resolved", value=1.0),)})
    made = score_trajectory("arm", trajectory, make_oracle(), make_scorers(Sources([task])), sample=2)
    assert (made.scores["resolved"], made.scores["line_recall"], made.sample) == (1.0, 0.5, 2)
    assert (made.split, made.tags["project"]) == ("heldout_bugs", "cart")
    assert Result.model_validate_json(made.model_dump_json()) == made


def test_a_metric_that_fails_is_named() -> None:
    class Bare:
        name = "bare"

        def score(self, trajectory: Trajectory, oracle: Oracle) -> Score:
            return cast("Score", 0.5)

    class Broken:
        name = "broken"

        def score(self, trajectory: Trajectory, oracle: Oracle) -> Score:
            raise ZeroDivisionError(trajectory.id)

    episode, oracle = make_trajectory(), make_oracle()
    with pytest.raises(ConfigError, match="metric 'bare' must return a Score, not float"):
        score_trajectory("arm", episode, oracle, [Bare()])
    with pytest.raises(ZeroDivisionError) as caught:
        score_trajectory("arm", episode, oracle, [Broken()])
    assert caught.value.__notes__ == [f"in the metric broken, on episode {episode.id} of task {episode.task.id}"]


def test_means_by_hand() -> None:
    """Two samples of one task weigh as one task; what was not measured does not count."""
    rows = [result("a", "t1", 1.0), result("a", "t1", 0.0, sample=1), result("a", "t2", None), result("a", "t3", 0.1)]
    measured = measures(rows, seed=0, resamples=200)
    line = measured[ALL]["line_recall"]
    assert (line.value, line.count) == (pytest.approx(0.3), 2)
    assert measured[ALL]["grounding"].value is None
    assert measured["heldout_bugs"] == measured[ALL]


@given(rows=RESULTS)
def test_measures_stay_within_bounds_and_do_not_mind_the_order(rows: list[Result]) -> None:
    measured = measures(rows, seed=0, resamples=100)
    assert list(measured) == groups_of(rows)
    for group in measured.values():
        one = group["line_recall"]
        if one.value is not None and one.low is not None and one.high is not None:
            assert 0 <= one.low <= one.value <= one.high <= 1
    shuffled = random.Random(1).sample(rows, len(rows))
    again = measures(shuffled, seed=0, resamples=100)
    for group, metrics in measured.items():
        assert again[group]["line_recall"].count == metrics["line_recall"].count
        assert again[group]["line_recall"].value == pytest.approx(metrics["line_recall"].value)


def test_a_comparison_by_hand() -> None:
    """Four shared tasks: better on two, worse on none; the fifth and sixth are not shared."""
    before = [result("base", f"t{number}", value) for number, value in enumerate([0.0, 0.0, 1.0, 0.0, 1.0])]
    after = [result("arm", f"t{number}", value) for number, value in enumerate([1.0, 1.0, 1.0, 0.0])]
    after.append(result("arm", "t9", 1.0))
    found = compare(after, before, ALL, "line_recall", seed=0, resamples=500)
    assert found is not None
    assert (found.difference.value, found.difference.count) == (0.5, 4)
    assert (found.better, found.worse, found.mcnemar_p) == (2, 0, 0.5)


def test_comparisons_of_shares_have_no_mcnemar_test_and_none_without_shared_tasks() -> None:
    found = compare([result("a", "t", 0.5)], [result("b", "t", 0.25)], ALL, "line_recall", seed=0, resamples=100)
    assert found is not None
    assert (found.mcnemar_p, found.difference.value) == (None, 0.25)
    assert compare([result("a", "t", 0.5)], [result("b", "u", 0.2)], ALL, "line_recall", seed=0, resamples=100) is None


def test_every_arm_is_compared_with_the_baseline() -> None:
    by_arm = {"b": [result("b", "t", 0.0)], "a": [result("a", "t", 1.0)], "empty": []}
    found = compare_all(by_arm, "b", seed=0, resamples=100)
    assert {(one.arm, one.baseline, one.group) for one in found} == {("a", "b", ALL), ("a", "b", "heldout_bugs")}
    assert compare_all(by_arm, "empty", seed=0, resamples=100) == ()
    assert compare_all({}, "none", seed=0, resamples=100) == ()

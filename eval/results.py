"""What an evaluation writes down: one `Result` an episode, and the `Summary` that follows from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from pydantic import Field

from gumshoe.eval import stats
from gumshoe.protocols import Scorer
from gumshoe.records import SCHEMA_VERSION, Oracle, PolicyInfo, Record, StopReason, Trajectory

__all__ = [
    "ALL",
    "SUMMARY_METRICS",
    "ArmSummary",
    "Comparison",
    "Measured",
    "Result",
    "Summary",
    "compare_all",
    "groups_of",
    "in_group",
    "measures",
    "score_trajectory",
]

ALL = "all"
"""The group of all tasks, whatever their split."""

SUMMARY_METRICS = (
    *("valid_calls", "reported"),
    *("file_precision", "file_recall", "file_f1"),
    *("function_precision", "function_recall", "function_f1"),
    *("line_precision", "line_recall", "line_f1"),
    *("first_right", "solved", "grounding", "brier", "debugged", "repeats", "steps", "tokens"),
)
"""What is averaged. Seconds are kept with each result only: they are no property of the policy alone."""

COMPARED_METRICS = ("valid_calls", "file_recall", "function_recall", "line_recall", "line_f1", "first_right")


class Result(Record):
    """One episode of one arm, scored. A score of None could not be measured."""

    arm: str
    task_id: str
    sample: int = Field(ge=0)
    split: str
    trajectory: str = Field(description="id of the trajectory in the arm's run folder")
    stop: StopReason | None = Field(description="None for an arm without episodes: the solver's own")
    scores: dict[str, float | None]
    tags: dict[str, str] = Field(default_factory=dict)


class Measured(Record):
    """A mean over episodes with its 95% interval; all None where nothing could be measured."""

    value: float | None
    low: float | None
    high: float | None
    count: int = Field(ge=0)


class ArmSummary(Record):
    """One arm: who decided, and its measures by group (`all` and each split) and metric."""

    name: str
    title: str
    policy: PolicyInfo
    model: str | None = Field(default=None, description="the model folder that was served")
    episodes: int = Field(ge=0)
    failed: int = Field(
        default=0, ge=0, description="episodes that the infrastructure failed for good: not in the measures"
    )
    groups: dict[str, dict[str, Measured]]


class Comparison(Record):
    """How an arm differs from the baseline on the tasks that both have finished, pair by pair."""

    arm: str
    baseline: str
    group: str
    metric: str
    difference: Measured
    better: int = Field(ge=0, description="pairs in which the arm is higher")
    worse: int = Field(ge=0)
    mcnemar_p: float | None = Field(default=None, description="exact McNemar test, where all values are 0 or 1")


class Summary(Record):
    """An evaluation in numbers. Says nothing about when or how fast, so that equal episodes give equal summaries."""

    schema_version: Literal[1] = SCHEMA_VERSION
    title: str
    config_hash: str
    seed: int
    tasks: dict[str, int] = Field(description="tasks in each group")
    arms: tuple[ArmSummary, ...]
    comparisons: tuple[Comparison, ...] = ()


def score_trajectory(
    arm: str, trajectory: Trajectory, oracle: Oracle, scorers: Iterable[Scorer], *, sample: int = 0
) -> Result:
    """Runs every scorer on a finished episode. Scores that came with the trajectory are kept beside them."""
    scores = {score.name: score.value for score in trajectory.scores}
    scores |= {scorer.name: scorer.score(trajectory, oracle, None).value for scorer in scorers}
    return Result(
        arm=arm,
        task_id=trajectory.task.id,
        sample=sample,
        split=trajectory.task.tags.get("split", ALL),
        trajectory=trajectory.id,
        stop=trajectory.stop,
        scores=scores,
        tags=trajectory.task.tags,
    )


def groups_of(results: Iterable[Result]) -> list[str]:
    """`all`, then each split by name; only `all` where there are no splits."""
    splits = sorted({result.split for result in results} - {ALL})
    return [ALL, *splits]


def in_group(results: Iterable[Result], group: str) -> list[Result]:
    """The results on tasks of one split; all of them for `all`."""
    return [result for result in results if group in (ALL, result.split)]


def measure(results: Sequence[Result], metric: str, *, seed: int, resamples: int) -> Measured:
    """The mean of a metric over the tasks where it could be measured, each task weighing the same."""
    values = list(_by_task(results, metric).values())
    return _measured(stats.mean_estimate(values, seed=seed, resamples=resamples))


def measures(results: Sequence[Result], *, seed: int, resamples: int) -> dict[str, dict[str, Measured]]:
    """Every summary metric in every group."""
    return {
        group: {
            metric: measure(in_group(results, group), metric, seed=seed, resamples=resamples)
            for metric in SUMMARY_METRICS
        }
        for group in groups_of(results)
    }


def compare(
    arm: Sequence[Result], baseline: Sequence[Result], group: str, metric: str, *, seed: int, resamples: int
) -> Comparison | None:
    """The paired difference on the tasks where both arms have the metric; None where there is no such task."""
    ours, theirs = (_by_task(in_group(results, group), metric) for results in (arm, baseline))
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
        difference=_measured(stats.paired_difference(before, after, seed=seed, resamples=resamples)),
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


def _by_task(results: Iterable[Result], metric: str) -> dict[str, float]:
    values: dict[str, list[float]] = {}
    for result in results:
        value = result.scores.get(metric)
        if value is not None:
            values.setdefault(result.task_id, []).append(value)
    return {task: sum(of_task) / len(of_task) for task, of_task in values.items()}


def _measured(estimate: stats.Estimate) -> Measured:
    return Measured(value=estimate.value, low=estimate.low, high=estimate.high, count=estimate.count)

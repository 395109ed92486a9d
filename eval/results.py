"""What an evaluation writes down: one `Result` an episode, and the `Summary` that follows from them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from pydantic import Field

from gumshoe.eval import stats
from gumshoe.eval.scorers.calibration import reliability
from gumshoe.eval.scorers.conduct import tool_counts
from gumshoe.protocols import Scorer
from gumshoe.records import SCHEMA_VERSION, Oracle, PolicyInfo, Record, StopReason, Trajectory

__all__ = [
    "ALL",
    "OUTCOMES",
    "SPENT_TIME",
    "SUMMARY_METRICS",
    "ArmSummary",
    "CalibrationBin",
    "Comparison",
    "FlakyTask",
    "Measured",
    "Result",
    "Summary",
    "calibration_of",
    "calls_by_tool",
    "compare",
    "compare_all",
    "groups_of",
    "in_group",
    "measures",
    "per_resolved",
    "score_trajectory",
]

ALL = "all"
"""The group of all tasks, whatever their split."""

SUMMARY_METRICS = (
    *("valid_calls", "reported"),
    *("file_precision", "file_recall", "file_f1"),
    *("function_precision", "function_recall", "function_f1"),
    *("line_precision", "line_recall", "line_f1"),
    *("first_right", "first_rank", "solved", "official", "grounding", "replayed", "brier"),
    *("debugged", "first_debugger", "repeats", "looped", "early_report", "late_report"),
    *("steps", "tokens", "cost", "solver_steps", "solver_tokens", "solver_cost"),
)
"""What is averaged. Seconds are kept with each result, and in timing.json: they are no property of the policy alone."""

AMOUNTS = ("first_rank", "first_debugger", "brier", "steps", "tokens", "cost")
"""What is no share, even where it happens to be 0 or 1 everywhere; nor is what a solver spends."""

COMPARED_METRICS = ("valid_calls", "file_recall", "function_recall", "line_recall", "line_f1", "first_right")
OUTCOMES = ("solved", "official")
"""Whether the bug is repaired in the end: by our grader, by the official harness."""
SPENT = ("tokens", "solver_tokens", "cost", "solver_cost")
SPENT_TIME = ("seconds", "solver_seconds")


class Result(Record):
    """One episode of one arm, scored. A score of None could not be measured."""

    arm: str
    task_id: str
    sample: int = Field(ge=0)
    split: str
    trajectory: str = Field(description="id of the trajectory in the arm's run folder; empty: the solver's own arm")
    solver: str = Field(default="", description="id of the solver's trajectory; empty: there is none")
    stop: StopReason | None = Field(description="None for an arm without episodes: the solver's own")
    scores: dict[str, float | None]
    tools: dict[str, int] = Field(default_factory=dict, description="calls by tool")
    patch: str = Field(default="", description="what was changed in the end, by the solver or the agent itself")
    tests: str = Field(default="", description="what the tests said of that patch; empty: it was not written down")
    tags: dict[str, str] = Field(default_factory=dict)


class Measured(Record):
    """A mean over episodes with its 95% interval; all None where nothing could be measured."""

    value: float | None
    low: float | None
    high: float | None
    count: int = Field(ge=0)


class CalibrationBin(Record):
    """Reports that were handed over with about the same confidence, and how often their first place was right."""

    low: float
    high: float
    confidence: float
    right: float
    count: int = Field(ge=1)


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
    per_resolved: dict[str, dict[str, Measured]] = Field(
        default_factory=dict, description="what one resolved task has cost, by group: tokens and dollars"
    )
    tools: dict[str, float] = Field(default_factory=dict, description="calls of each tool, an episode")
    calibration: tuple[CalibrationBin, ...] = Field(default=(), description="reliability of the stated confidence")
    calibration_error: float | None = Field(default=None, description="expected calibration error over these bins")


class FlakyTask(Record):
    """A task that its own gold patch does not resolve each time; it is left out of every arm."""

    task_id: str
    passed: int = Field(ge=0, description="runs in which it did")
    runs: int = Field(ge=1)


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
    flaky: tuple[FlakyTask, ...] = Field(default=(), description="tasks that were left out of every arm")
    solver: str = Field(default="", description="who repairs the bugs; empty: nobody does")


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
        tools=tool_counts(trajectory),
        patch=trajectory.patch,
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
    amount = metric in AMOUNTS or metric.startswith("solver_")
    estimate = stats.bootstrap_mean if amount else stats.mean_estimate
    return _measured(estimate(values, seed=seed, resamples=resamples))


def measures(results: Sequence[Result], *, seed: int, resamples: int) -> dict[str, dict[str, Measured]]:
    """Every summary metric in every group, and pass@k where tasks were sampled more than once."""
    return {
        group: {
            metric: measure(in_group(results, group), metric, seed=seed, resamples=resamples)
            for metric in SUMMARY_METRICS
        }
        | pass_at_k(in_group(results, group), seed=seed, resamples=resamples)
        for group in groups_of(results)
    }


def pass_at_k(results: Sequence[Result], *, seed: int, resamples: int) -> dict[str, Measured]:
    """`pass@k` for each k from 2 to the fewest samples that a task has."""
    outcomes = _samples(results, "solved")
    most = min(map(len, outcomes.values()), default=0)
    return {
        f"pass@{k}": _measured(
            stats.mean_estimate(
                [stats.pass_at(len(one), sum(value == 1 for value in one), k) for one in outcomes.values()],
                seed=seed,
                resamples=resamples,
            )
        )
        for k in range(2, most + 1)
    }


def per_resolved(
    results: Sequence[Result], names: Sequence[str] = SPENT, *, seed: int, resamples: int
) -> dict[str, dict[str, Measured]]:
    """What one resolved task has cost, by group: each of `names`, and for each that the solver also spends the sum of
    both as `total_...`. Only what was measured is there; what nobody spent is 0.
    """
    return {
        group: {
            name: _measured(stats.ratio_estimate(spent, gained, seed=seed, resamples=resamples))
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
        (confidence, right == 1)
        for result in results
        if (confidence := result.scores.get("confidence")) is not None
        and (right := result.scores.get("first_is_right")) is not None
    ]
    return tuple(CalibrationBin(**dataclasses.asdict(point)) for point in reliability(pairs))


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
    return {task: sum(of_task) / len(of_task) for task, of_task in _samples(results, metric).items()}


def _samples(results: Iterable[Result], metric: str) -> dict[str, list[float]]:
    """The values of a metric by task, where it could be measured."""
    values: dict[str, list[float]] = {}
    for result in results:
        value = result.scores.get(metric)
        if value is not None:
            values.setdefault(result.task_id, []).append(value)
    return values


def _measured(estimate: stats.Estimate) -> Measured:
    return Measured(value=estimate.value, low=estimate.low, high=estimate.high, count=estimate.count)

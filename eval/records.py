"""What an evaluation records: one `Result` per episode, and the `Summary` derived from them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from gumshoe.records import SCHEMA_VERSION, PolicyInfo, Record, StopReason

ALL = "all"
"""The group of all tasks, whatever their split."""


class Result(Record):
    """One episode of one arm, scored. A score is None if it could not be measured."""

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
    tests: str = Field(default="", description="test results of that patch; empty: not recorded")
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
    seeks: bool = Field(default=True, description="it has episodes of its own; false: a solver without a seeker")
    calibration_error: float | None = Field(default=None, description="expected calibration error over these bins")


class LossCurve(Record):
    """The loss of a training run over its steps."""

    label: str
    points: tuple[tuple[float, float], ...] = Field(description="(step, loss)")


class FlakyTask(Record):
    """A task that its own gold patch does not resolve each time; it is left out of every arm."""

    task_id: str
    passed: int = Field(ge=0, description="runs in which it did")
    runs: int = Field(ge=1)
    why: str = Field(default="", description="why the first of the other runs did not")


class Comparison(Record):
    """How an arm differs from the baseline on the tasks that both have finished, pair by pair."""

    arm: str
    baseline: str
    group: str
    metric: str
    difference: Measured
    better: int = Field(ge=0, description="pairs in which the arm is higher")
    worse: int = Field(ge=0)
    mcnemar_p: float | None = Field(default=None, description="exact McNemar test, if all values are 0 or 1")


class Prediction(Record):
    """A patch as the SWE-bench harness reads it. An empty one counts, too, but is not run."""

    instance_id: str = Field(min_length=1)
    model_name_or_path: str = Field(min_length=1)
    model_patch: str = ""


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
    solver: str = Field(default="", description="who fixes the bugs; empty: nobody does, or the arms themselves")
    baseline: str = Field(default="", description="the arm that uplift is counted from; empty: there is none")
    own_metrics: dict[str, str] = Field(
        default_factory=dict, description="metrics of the config's own, each with its unit"
    )
    losses: tuple[LossCurve, ...] = Field(default=(), description="training losses of the model, if a log was given")

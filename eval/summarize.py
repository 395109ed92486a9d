"""Turns results into the summary: every arm, and every comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gumshoe.config import config_hash
from gumshoe.eval.arms.arm import Arm, CollectedPacks, EvalRun, Pair
from gumshoe.eval.config import EvalConfig
from gumshoe.eval.records import ALL, ArmSummary, Comparison, FlakyTask, LossCurve, Measured, Result, Summary
from gumshoe.eval.results.measures import (
    OUTCOMES,
    SPENT_TIME,
    calibration_of,
    calls_by_tool,
    compare,
    compare_all,
    groups_of,
    measures,
    per_resolved,
)
from gumshoe.eval.results.stats import expected_error
from gumshoe.eval.scoring import load_scorers
from gumshoe.records import PolicyInfo

__all__ = ["summarize", "timing"]

SOLVER = "solver"
"""Policy kind of the arms in which the solver works without a seeker."""
ByArm = Mapping[str, Sequence[Result]]


def summarize(
    run: EvalRun,
    flaky: tuple[FlakyTask, ...],
    arms: Sequence[Arm],
    by_arm: ByArm,
    losses: tuple[LossCurve, ...] = (),
) -> Summary:
    """The numbers of an evaluation; equal results give an equal summary."""
    config = run.config
    shown = [arm for arm in arms if arm.name in by_arm]
    seeking = {arm.name: by_arm[arm.name] for arm in shown if arm.packs.policy is not None}
    own = [scorer.name for scorer in load_scorers(config.metrics)]
    return Summary(
        title=config.title,
        config_hash=config_hash(config),
        seed=config.seed,
        tasks=_count_tasks(run.tasks),
        flaky=flaky,
        solver=next((arm.solver.name for arm in arms if arm.solver is not None and arm.solver.name), ""),
        baseline=next((name for arm in shown for name in arm.against[:1]), ""),
        losses=losses,
        arms=tuple(_arm(config, own, arm, run.packs[arm.name], by_arm[arm.name]) for arm in shown),
        comparisons=(
            *compare_all(seeking, config.baseline_name, seed=config.seed, resamples=config.resamples),
            *_outcome_comparisons(config, shown, by_arm),
        ),
    )


def timing(config: EvalConfig, by_arm: ByArm) -> dict[str, dict[str, dict[str, Any]]]:
    """Seconds for one resolved task, by arm, group and who spent them. No two runs take equally long, so these are kept
    apart from the summary.
    """
    return {
        name: {
            group: {what: value.model_dump(mode="json") for what, value in of_group.items()}
            for group, of_group in seconds_per_resolved(config, results).items()
        }
        for name, results in by_arm.items()
    }


def seconds_per_resolved(config: EvalConfig, results: Sequence[Result]) -> dict[str, dict[str, Measured]]:
    """Seconds for one resolved task, by group and who spent them."""
    return per_resolved(results, SPENT_TIME, seed=config.seed, resamples=config.resamples)


def _arm(
    config: EvalConfig, own_metrics: Sequence[str], arm: Arm, packs: CollectedPacks, results: Sequence[Result]
) -> ArmSummary:
    curve = calibration_of(results)
    policy = arm.packs.policy
    solver = arm.solver.name if arm.solver is not None else ""
    return ArmSummary(
        name=arm.name,
        title=arm.title,
        policy=policy or PolicyInfo(kind=SOLVER, model=solver, agent="solver"),
        seeks=policy is not None,
        model=arm.model,
        episodes=len(results) if policy is not None else sum(bool(one.solver) for one in results),
        failed=packs.failed,
        groups=measures(results, own_metrics, seed=config.seed, resamples=config.resamples),
        per_resolved=per_resolved(results, seed=config.seed, resamples=config.resamples),
        tools=calls_by_tool(results),
        calibration=curve,
        calibration_error=expected_error(curve),
    )


def _outcome_comparisons(config: EvalConfig, arms: Sequence[Arm], by_arm: ByArm) -> list[Comparison]:
    """What each pack adds to what the solver fixes alone, and whatever else an arm is held against."""
    found = [
        compare(by_arm[arm.name], by_arm[other], group, metric, seed=config.seed, resamples=config.resamples)
        for arm in arms
        for other in arm.against
        if by_arm[arm.name] and by_arm.get(other)
        for group in groups_of(by_arm[arm.name])
        for metric in OUTCOMES
    ]
    return [one for one in found if one is not None]


def _count_tasks(tasks: Sequence[Pair]) -> dict[str, int]:
    counts = {ALL: len(tasks)}
    for task, _ in tasks:
        split = task.tags.get("split", ALL)
        if split != ALL:
            counts[split] = counts.get(split, 0) + 1
    return dict(sorted(counts.items(), key=lambda item: (item[0] != ALL, item[0])))

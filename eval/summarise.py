"""From results to the summary: every arm, and every comparison that the page shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gumshoe.config import config_hash
from gumshoe.eval.arms import PlayedArm
from gumshoe.eval.config import ArmConfig, EvalConfig
from gumshoe.eval.results import (
    ALL,
    OUTCOMES,
    SPENT_TIME,
    ArmSummary,
    Comparison,
    FlakyTask,
    Measured,
    Result,
    Summary,
    calibration_of,
    calls_by_tool,
    compare,
    compare_all,
    groups_of,
    measures,
    per_resolved,
)
from gumshoe.eval.scorers.calibration import Bin, expected_error
from gumshoe.eval.solver.jobs import REFERENCE_TITLES
from gumshoe.records import Oracle, PolicyInfo, Task

__all__ = ["SOLVER", "summarise", "timing"]

SOLVER = "solver"
"""Policy kind of the arms in which the solver works without a seeker."""
Pairs = Sequence[tuple[Task, Oracle]]


def summarise(
    config: EvalConfig,
    tasks: Pairs,
    flaky: tuple[FlakyTask, ...],
    played: Sequence[PlayedArm],
    by_arm: Mapping[str, Sequence[Result]],
) -> Summary:
    """The numbers of an evaluation; equal results give an equal summary."""
    own = {one.arm.name for one in played}
    references = {name: results for name, results in by_arm.items() if name not in own}
    return Summary(
        title=config.title,
        config_hash=config_hash(config),
        seed=config.seed,
        tasks=_count_tasks(tasks),
        flaky=flaky,
        solver=_solver_name(config),
        arms=(
            *(_arm(config, one, by_arm[one.arm.name]) for one in played),
            *(_reference(config, name, results) for name, results in references.items()),
        ),
        comparisons=(
            *compare_all(
                {name: by_arm[name] for name in own_order(played)},
                _baseline(config),
                seed=config.seed,
                resamples=config.resamples,
            ),
            *_outcome_comparisons(config, by_arm),
        ),
    )


def own_order(played: Sequence[PlayedArm]) -> list[str]:
    """The names of the played arms, in their order."""
    return [one.arm.name for one in played]


def timing(config: EvalConfig, by_arm: Mapping[str, Sequence[Result]]) -> dict[str, dict[str, dict[str, Any]]]:
    """Seconds for one resolved task, by arm, group and who spent them. No two runs take equally long, so these stand
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


def _arm(config: EvalConfig, played: PlayedArm, results: Sequence[Result]) -> ArmSummary:
    arm = played.arm
    return _summary_of(
        config,
        results,
        name=arm.name,
        title=arm.title,
        policy=_policy_info(config, arm),
        model=config.fill(arm.model) if arm.model is not None else None,
        episodes=len(results),
        failed=played.result.gave_up,
    )


def _reference(config: EvalConfig, name: str, results: Sequence[Result]) -> ArmSummary:
    return _summary_of(
        config,
        results,
        name=name,
        title=next(title for known, title in REFERENCE_TITLES.items() if known == name),
        policy=PolicyInfo(kind=SOLVER, model=_solver_name(config), agent="solver"),
        episodes=sum(bool(result.solver) for result in results),
    )


def _summary_of(config: EvalConfig, results: Sequence[Result], **facts: object) -> ArmSummary:
    curve = calibration_of(results)
    return ArmSummary.model_validate(
        {
            **facts,
            "groups": measures(results, seed=config.seed, resamples=config.resamples),
            "per_resolved": per_resolved(results, seed=config.seed, resamples=config.resamples),
            "tools": calls_by_tool(results),
            "calibration": curve,
            "calibration_error": expected_error([Bin(**point.model_dump()) for point in curve]),
        }
    )


def _outcome_comparisons(config: EvalConfig, by_arm: Mapping[str, Sequence[Result]]) -> list[Comparison]:
    """What each pack adds to what the solver repairs alone, and whether the debugger is worth it.

    Without a solver of its own every arm is compared with the baseline.
    """
    alone = "no_pack" if by_arm.get("no_pack") else _baseline(config)
    pairs = [(name, alone) for name in by_arm if name != alone]
    pairs += [(name, "solo") for name in by_arm if name not in ("solo", "no_pack") and "solo" in by_arm]
    pairs += [("debug", "rewrite")]
    found = [
        compare(by_arm[one], by_arm[other], group, metric, seed=config.seed, resamples=config.resamples)
        for one, other in dict.fromkeys(pairs)
        if by_arm.get(one) and by_arm.get(other)
        for group in groups_of(by_arm[one])
        for metric in OUTCOMES
    ]
    return [one for one in found if one is not None]


def _solver_name(config: EvalConfig) -> str:
    solver = config.solver
    if solver is None:
        return ""
    if solver.kind == "scripted":
        return f"scripted, {solver.tries} tries"
    who = config.fill(solver.model) if solver.model is not None else str(getattr(solver.policy, "model", ""))
    return f"{who or getattr(solver.policy, 'kind', '')}, {solver.mode.replace('_', ' ')}"


def _policy_info(config: EvalConfig, arm: ArmConfig) -> PolicyInfo:
    agent = (arm.agent or config.agent).kind
    if arm.answers is not None:
        return PolicyInfo(kind=arm.answers.format, agent="seeker")
    if arm.policy is None:
        return PolicyInfo(kind="openai", model=config.fill(arm.model or ""), agent=agent)
    return PolicyInfo(kind=arm.policy.kind, model=getattr(arm.policy, "model", ""), agent=agent)


def _baseline(config: EvalConfig) -> str:
    """The arm that was named the baseline, else the first."""
    return next((arm.name for arm in config.arms if arm.baseline), config.arms[0].name)


def _count_tasks(tasks: Pairs) -> dict[str, int]:
    counts = {ALL: len(tasks)}
    for task, _ in tasks:
        split = task.tags.get("split", ALL)
        if split != ALL:
            counts[split] = counts.get(split, 0) + 1
    return dict(sorted(counts.items(), key=lambda item: (item[0] != ALL, item[0])))

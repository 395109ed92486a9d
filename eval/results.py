"""Turns what the arms did into results and their summary: episodes are scored, patches give the outcomes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gumshoe.config import config_hash
from gumshoe.errors import ConfigError
from gumshoe.eval.arms.arm import Arm, AttemptKey, CollectedPacks, EvalRun, Pair, Solution, TaskSample
from gumshoe.eval.config import EvalConfig
from gumshoe.eval.records import ALL, ArmSummary, Comparison, FlakyTask, LossCurve, Result, Summary
from gumshoe.eval.score.buggy_code import BuggyCode
from gumshoe.eval.score.measures import (
    OUTCOMES,
    SPENT_TIME,
    Bootstrap,
    calibration_of,
    calls_by_tool,
    compare,
    compare_all,
    expected_error,
    groups_of,
    measures,
    per_resolved,
)
from gumshoe.eval.score.metrics import BY_NAME, UNAVERAGED, adherence, own_scores, tool_counts
from gumshoe.plugins import METRICS, announced, load_named
from gumshoe.protocols import Scorer
from gumshoe.records import ContextPack, Oracle, PolicyInfo, Score, Task, Trajectory

OWN = frozenset({*BY_NAME, *UNAVERAGED})
"""The names that metrics of others cannot have."""
SOLVER = "solver"
"""Policy kind of the arms in which the solver works without a seeker."""
ByArm = Mapping[str, Sequence[Result]]


def make_results(
    arms: Sequence[Arm], solutions: Mapping[AttemptKey, Solution], run: EvalRun
) -> dict[str, list[Result]]:
    """The results by arm: one for each episode, and one for each solution that comes without an episode.

    Raises GumshoeError: a sandbox failed, or a gold patch cannot be read.
    """
    packs = run.packs
    scored = _score(packs, run)
    samples = range(run.config.tasks.samples)
    by_arm: dict[str, list[Result]] = {}
    for arm in arms:
        own = scored.get(arm.name, {})
        given = packs[arm.name].packs if arm.name in packs else {}
        keys = [*own, *((task.id, sample) for sample in samples for task, _ in run.tasks)]
        found: list[Result] = []
        for task, sample in dict.fromkeys(keys):
            solution = solutions.get((arm.name, task, sample))
            result = own.get((task, sample))
            if solution is not None:
                result = result or _blank(arm.name, run.pairs[task][0], sample)
                result = _with_solution(result, solution, given.get((task, sample)))
            if result is not None:
                found.append(result)
        if found or arm.name in packs:
            by_arm[arm.name] = found
    return by_arm


def _score(packs: Mapping[str, CollectedPacks], run: EvalRun) -> dict[str, dict[TaskSample, Result]]:
    """Every episode, scored, by arm and by task and sample."""
    episodes = [one for of_arm in packs.values() for one in of_arm.episodes.values()]
    code, pairs = run.buggy_code(episodes, "sources.jsonl"), run.pairs
    return {
        name: {
            (task, sample): score_trajectory(name, episode, pairs[task][1], code, run.scorers, sample=sample)
            for (task, sample), episode in of_arm.episodes.items()
        }
        for name, of_arm in packs.items()
    }


def score_trajectory(
    arm: str,
    trajectory: Trajectory,
    oracle: Oracle,
    code: BuggyCode,
    added: Iterable[Scorer] = (),
    *,
    sample: int = 0,
) -> Result:
    """Measures a finished episode, also by `added` metrics. Scores that came with the trajectory are kept beside them.

    Raises ConfigError if a metric returns something other than a Score.
    """
    scores = {score.name: score.value for score in trajectory.scores}
    scores |= own_scores(trajectory, oracle, code)
    scores |= {scorer.name: _value(scorer, trajectory, oracle) for scorer in added}
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


def _value(scorer: Scorer, trajectory: Trajectory, oracle: Oracle) -> float | None:
    """What a scorer says. Whatever else it raises gets a note that names it and the episode."""
    try:
        score: object = scorer.score(trajectory, oracle)
    except Exception as error:
        error.add_note(f"in the metric {scorer.name}, on episode {trajectory.id} of task {trajectory.task.id}")
        raise
    if not isinstance(score, Score):
        raise ConfigError(f"metric {scorer.name!r} must return a Score, not {type(score).__name__}")
    return score.value


def _with_solution(result: Result, solution: Solution, pack: ContextPack | None) -> Result:
    own = solution.trajectory == result.trajectory  # The arm's own agent made the patch.
    spent = {
        "solver_steps": solution.steps,
        "solver_tokens": solution.tokens,
        "solver_cost": solution.cost_usd,
        "solver_seconds": solution.seconds,
        "adherence": adherence(pack, solution.patch),
    }
    scores = {**result.scores, "solved": solution.solved, **({} if own and result.trajectory else spent)}
    solver = "" if own else solution.trajectory
    return result.model_copy(
        update={"scores": scores, "solver": solver, "patch": solution.patch, "tests": solution.tests}
    )


def _blank(arm: str, task: Task, sample: int) -> Result:
    split = task.tags.get("split", ALL)
    return Result(
        arm=arm, task_id=task.id, sample=sample, split=split, trajectory="", stop=None, scores={}, tags=task.tags
    )


def load_scorers(names: Iterable[str]) -> tuple[Scorer, ...]:
    """One scorer for each name: announced in the entry-point group `gumshoe.metrics`, or a path to one or to its class.

    Raises ConfigError if a name is unknown or cannot be imported, is not a scorer, or its metric already exists.
    """
    scorers: dict[str, Scorer] = {}
    for name in names:
        scorer = _load(name)
        if scorer.name in OWN:
            raise ConfigError(f"metric {scorer.name!r} is one of Gumshoe's own: give {name!r} another name")
        if scorer.name in scorers:
            raise ConfigError(f"metric {scorer.name!r} is listed twice: list each metric once")
        scorers[scorer.name] = scorer
    return tuple(scorers.values())


def _load(name: str) -> Scorer:
    scorer = load_named(name, "metric", announced(METRICS))
    if not isinstance(getattr(scorer, "name", None), str) or not hasattr(scorer, "score"):
        raise ConfigError(f"{name!r} is not a metric: it needs a name and score(trajectory, oracle) -> Score")
    return scorer


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
    own = {scorer.name: str(getattr(scorer, "unit", "")) for scorer in run.scorers}
    return Summary(
        title=config.title,
        config_hash=config_hash(config),
        seed=config.seed,
        tasks=_count_tasks(run.tasks),
        flaky=flaky,
        solver=next((arm.solver.name for arm in arms if arm.solver is not None and arm.solver.name), ""),
        baseline=next((name for arm in shown for name in arm.against[:1]), ""),
        own_metrics=own,
        losses=losses,
        arms=tuple(_arm(config, own, arm, run.packs[arm.name], by_arm[arm.name]) for arm in shown),
        comparisons=(
            *compare_all(seeking, config.baseline_name, _bootstrap(config)),
            *_outcome_comparisons(config, shown, by_arm),
        ),
    )


def _bootstrap(config: EvalConfig) -> Bootstrap:
    return Bootstrap(config.seed, config.resamples)


def timing(config: EvalConfig, by_arm: ByArm) -> dict[str, dict[str, dict[str, Any]]]:
    """Seconds for one resolved task, by arm, group and who spent them. No two runs take equally long, so these are kept
    apart from the summary.
    """
    return {
        name: {
            group: {what: value.model_dump(mode="json") for what, value in of_group.items()}
            for group, of_group in per_resolved(results, _bootstrap(config), SPENT_TIME).items()
        }
        for name, results in by_arm.items()
    }


def _arm(
    config: EvalConfig, own_metrics: Mapping[str, str], arm: Arm, packs: CollectedPacks, results: Sequence[Result]
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
        groups=measures(results, _bootstrap(config), own_metrics),
        per_resolved=per_resolved(results, _bootstrap(config)),
        tools=calls_by_tool(results),
        calibration=curve,
        calibration_error=expected_error(curve),
    )


def _outcome_comparisons(config: EvalConfig, arms: Sequence[Arm], by_arm: ByArm) -> list[Comparison]:
    """What each pack adds to what the solver fixes alone, and whatever else an arm is held against."""
    found = [
        compare(by_arm[arm.name], by_arm[other], group, metric, _bootstrap(config))
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

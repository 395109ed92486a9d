"""`gumshoe eval`: play every arm on the same tasks, score, compare, write down."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

from gumshoe.collect.control import Control
from gumshoe.collect.store import write_whole
from gumshoe.config import config_hash, dump_config
from gumshoe.env.tasks import load_tasks
from gumshoe.errors import ConfigError, TaskError
from gumshoe.eval.arms import ArmPlayer, Hooks, PlayedArm
from gumshoe.eval.config import ArmConfig, EvalConfig
from gumshoe.eval.results import (
    ALL,
    ArmSummary,
    Comparison,
    Result,
    Summary,
    compare,
    compare_all,
    groups_of,
    measures,
    score_trajectory,
)
from gumshoe.eval.scorers import make_scorers
from gumshoe.eval.solver.solve import REFERENCE_ARMS, Job, SolverRuns, reference_jobs
from gumshoe.records import ContextPack, Oracle, PolicyInfo, Task, Trajectory

__all__ = ["Evaluation", "choose_tasks", "evaluate"]

Pair = tuple[Task, Oracle]


@dataclass(frozen=True)
class Evaluation:
    """All that came out: the numbers, and the episodes they stand for."""

    config: EvalConfig
    summary: Summary
    results: tuple[Result, ...]
    tasks: tuple[Pair, ...]
    trajectories: Mapping[str, Trajectory]
    stopped: str | None = None
    files: Mapping[str, Path] = field(default_factory=dict)


def evaluate(config: EvalConfig, control: Control, hooks: Mapping[str, Hooks] | None = None) -> Evaluation:
    """Plays what is missing, scores everything and writes results.jsonl, summary.json and config.yaml.

    Args:
        config: the evaluation; its folder is resumed if it is there.
        control: stops it.
        hooks: what is called while an arm is played, by the arm's name.

    Raises:
        GumshoeError: a config, task, model or server is wrong, or nothing works any more.
    """
    out = Path(config.out)
    tasks = choose_tasks(config)
    ids = tuple(task.id for task, _ in tasks)
    players = [ArmPlayer(config, arm, ids) for arm in config.arms]
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"the folder {out} cannot be made: {error}") from None
    write_whole(out / "config.yaml", dump_config(config))
    played: list[PlayedArm] = []
    for arm, player in zip(config.arms, players, strict=True):
        played.append(player.play(control, (hooks or {}).get(arm.name)))
        if played[-1].result.stopped is not None:
            break
    return _conclude(config, tasks, played, out, control)


def choose_tasks(config: EvalConfig) -> tuple[Pair, ...]:
    """The tasks of an evaluation. A limit is shared out evenly between the splits. Raises TaskError."""
    wanted = config.tasks
    options: dict[str, Any] = dict(wanted.options)
    tasks = list(load_tasks(wanted.source, ids=wanted.ids or None, tags=wanted.tags, **options))
    if not tasks:
        raise TaskError(f"no task of {wanted.source} is left after tasks.ids and tasks.tags: loosen them")
    if wanted.shuffle:
        random.Random(config.seed).shuffle(tasks)
    if wanted.limit is None:
        return tuple(tasks)
    by_split: dict[str, list[Pair]] = {}
    for task, oracle in tasks:
        by_split.setdefault(task.tags.get("split", ALL), []).append((task, oracle))
    turns = zip_longest(*(by_split[split] for split in sorted(by_split)))
    chosen = {pair[0].id for pair in [pair for turn in turns for pair in turn if pair is not None][: wanted.limit]}
    return tuple(pair for pair in tasks if pair[0].id in chosen)


def _conclude(
    config: EvalConfig, tasks: tuple[Pair, ...], played: Sequence[PlayedArm], out: Path, control: Control
) -> Evaluation:
    oracles = {task.id: oracle for task, oracle in tasks}
    scorers = make_scorers(task for task, _ in tasks)
    by_arm: dict[str, list[Result]] = {}
    for one in played:
        by_arm[one.arm.name] = [
            score_trajectory(one.arm.name, trajectory, oracles[trajectory.task.id], scorers, sample=sample)
            for sample, trajectory in one.trajectories
        ]
    solo = _solve(config, tasks, played, by_arm, out, control) if config.solver is not None else {}
    results = tuple(result for of_arm in (*by_arm.values(), *solo.values()) for result in of_arm)
    summary = Summary(
        title=config.title,
        config_hash=config_hash(config),
        seed=config.seed,
        tasks=_count_tasks(tasks),
        arms=(
            *(_summarise(config, one, by_arm[one.arm.name]) for one in played),
            *(_summarise_solo(config, name, of_arm) for name, of_arm in solo.items()),
        ),
        comparisons=(
            *compare_all(by_arm, _baseline(config), seed=config.seed, resamples=config.resamples),
            *_uplift(config, {**by_arm, **solo}),
        ),
    )
    files = {"results": out / "results.jsonl", "summary": out / "summary.json"}
    write_whole(files["results"], "".join(f"{result.model_dump_json()}\n" for result in results))
    write_whole(files["summary"], json.dumps(summary.model_dump(mode="json"), indent=2) + "\n")
    return Evaluation(
        config=config,
        summary=summary,
        results=results,
        tasks=tasks,
        trajectories={
            f"{one.arm.name}/{trajectory.id}": trajectory for one in played for _, trajectory in one.trajectories
        },
        stopped=next((one.result.stopped for one in played if one.result.stopped is not None), None),
        files=files,
    )


def _summarise(config: EvalConfig, played: PlayedArm, results: Sequence[Result]) -> ArmSummary:
    arm = played.arm
    return ArmSummary(
        name=arm.name,
        title=arm.title,
        policy=_policy_info(config, arm),
        model=config.fill(arm.model) if arm.model is not None else None,
        episodes=len(results),
        failed=played.result.gave_up,
        groups=measures(results, seed=config.seed, resamples=config.resamples),
    )


def _solve(
    config: EvalConfig,
    tasks: tuple[Pair, ...],
    played: Sequence[PlayedArm],
    by_arm: dict[str, list[Result]],
    out: Path,
    control: Control,
) -> dict[str, list[Result]]:
    """Puts `solved` into the results of `by_arm` and returns those of the solver's own arms.

    An arm is represented by the first episode of each task; one that handed nothing over has an empty pack.
    """
    assert config.solver is not None
    pairs = {task.id: (task, oracle) for task, oracle in tasks}
    jobs = reference_jobs(tasks)
    for one in played:
        jobs += [
            Job(one.arm.name, *pairs[trajectory.task.id], trajectory.context_pack or ContextPack())
            for sample, trajectory in one.trajectories
            if sample == 0
        ]
    runs = SolverRuns(config.solver, out / "solver.jsonl", config.sandbox, config.seed)
    solved = runs.run(jobs, control, config.workers)
    for name, results in by_arm.items():
        by_arm[name] = [
            result.model_copy(update={"scores": {**result.scores, "solved": solved.get((name, result.task_id))}})
            if result.sample == 0
            else result
            for result in results
        ]
    return {name: _solo_results(name, tasks, solved) for name in REFERENCE_ARMS}


def _solo_results(arm: str, tasks: tuple[Pair, ...], solved: Mapping[tuple[str, str], float]) -> list[Result]:
    return [
        Result(
            arm=arm,
            task_id=task.id,
            sample=0,
            split=task.tags.get("split", ALL),
            trajectory="",
            stop=None,
            scores={"solved": solved.get((arm, task.id))},
            tags=task.tags,
        )
        for task, _ in tasks
    ]


def _uplift(config: EvalConfig, by_arm: Mapping[str, Sequence[Result]]) -> list[Comparison]:
    """What each report adds to what the solver does alone."""
    alone = by_arm.get("no_pack", ())
    found = [
        compare(of_arm, alone, group, "solved", seed=config.seed, resamples=config.resamples)
        for name, of_arm in by_arm.items()
        if name != "no_pack" and of_arm and alone
        for group in groups_of(of_arm)
    ]
    return [one for one in found if one is not None]


def _summarise_solo(config: EvalConfig, name: str, results: Sequence[Result]) -> ArmSummary:
    return ArmSummary(
        name=name,
        title=REFERENCE_ARMS[name],
        policy=PolicyInfo(kind="solver", agent="solver"),
        episodes=0,
        groups=measures(results, seed=config.seed, resamples=config.resamples),
    )


def _policy_info(config: EvalConfig, arm: ArmConfig) -> PolicyInfo:
    agent = (arm.agent or config.agent).kind
    if arm.policy is None:
        return PolicyInfo(kind="openai", model=config.fill(arm.model or ""), agent=agent)
    return PolicyInfo(kind=arm.policy.kind, model=getattr(arm.policy, "model", ""), agent=agent)


def _baseline(config: EvalConfig) -> str:
    """The arm that was named the baseline, else the first."""
    return next((arm.name for arm in config.arms if arm.baseline), config.arms[0].name)


def _count_tasks(tasks: Sequence[Pair]) -> dict[str, int]:
    counts = {ALL: len(tasks)}
    for task, _ in tasks:
        split = task.tags.get("split", ALL)
        if split != ALL:
            counts[split] = counts.get(split, 0) + 1
    return dict(sorted(counts.items(), key=lambda item: (item[0] != ALL, item[0])))

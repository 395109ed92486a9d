"""`gumshoe eval`: play every arm on the same tasks, let the solver repair, score, compare, write down."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

from gumshoe.collect.agent import make_agent
from gumshoe.collect.control import Control
from gumshoe.collect.places import MakePlace, open_places
from gumshoe.collect.runner import wanted_tasks
from gumshoe.collect.store import write_whole
from gumshoe.config import dump_config
from gumshoe.errors import ConfigError, TaskError
from gumshoe.eval.answers import answered_arm
from gumshoe.eval.arms import ArmPlayer, Hooks, PlayedArm
from gumshoe.eval.config import EvalConfig
from gumshoe.eval.fetch import fetch_sources
from gumshoe.eval.flaky import find_flaky
from gumshoe.eval.official import check_harness, grade_officially, with_official, write_all_predictions
from gumshoe.eval.replays import Recorded, Replays
from gumshoe.eval.results import ALL, FlakyTask, Result, Summary, score_trajectory
from gumshoe.eval.scorers import make_scorers
from gumshoe.eval.solve import Repaired, check_solver, repair_all, with_outcomes
from gumshoe.eval.summarise import summarise, timing
from gumshoe.records import Oracle, Task, Trajectory

__all__ = ["Evaluation", "choose_tasks", "evaluate"]

Pair = tuple[Task, Oracle]
Say = Callable[[str], None]


@dataclass(frozen=True)
class Evaluation:
    """All that came out: the numbers, and the episodes they stand for.

    `trajectories` holds the arms' episodes as `ARM/ID`, those of the solver as `solver/ARM/ID`.
    """

    config: EvalConfig
    summary: Summary
    results: tuple[Result, ...]
    tasks: tuple[Pair, ...]
    trajectories: Mapping[str, Trajectory]
    stopped: str | None = None
    files: Mapping[str, Path] = field(default_factory=dict)


def evaluate(
    config: EvalConfig,
    control: Control,
    hooks: Callable[[str], Hooks] = lambda name: Hooks(),
    say: Say = lambda line: None,
) -> Evaluation:
    """Plays what is missing, scores everything and writes results.jsonl, summary.json, timing.json, config.yaml and,
    where code was changed, preds.jsonl.

    Args:
        config: the evaluation; its folder is resumed if it is there.
        control: stops it.
        hooks: gives what is called while an arm is played, by the arm's name (`solver/ARM` for the solver's episodes).
        say: called with a line at each part that takes a while.

    Raises:
        GumshoeError: a config, task, model or server is wrong, or nothing works any more.
    """
    out = Path(config.out)
    rows = check_harness(config) if config.harness is not None else []
    tasks = choose_tasks(config, say)
    check_solver(config, tasks)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"the folder {out} cannot be made: {error}") from None
    tasks, flaky = _sound(config, tasks, out, control, say)
    with open_places(config.runner, config.ray) as make_place:
        played = _play(config, tasks, control, hooks, make_place)
        by_arm = _score(config, tasks, played, out, control)
        repaired = repair_all(
            config, tasks, played, control, hooks=lambda arm: hooks(f"solver/{arm}"), make_place=make_place
        )
    by_arm = with_outcomes(by_arm, tasks, repaired, config.tasks.samples)
    predictions = write_all_predictions(by_arm, _main_arm(config, played), out)
    if config.harness is not None and not control.finishing:
        by_arm = with_official(by_arm, grade_officially(config, rows, predictions, say))
    summary = summarise(config, tasks, flaky, played, by_arm)
    return Evaluation(
        config=config,
        summary=summary,
        results=tuple(result for of_arm in by_arm.values() for result in of_arm),
        tasks=tasks,
        trajectories=_trajectories(played, repaired),
        stopped=_stopped(played, control),
        files=_write(config, summary, by_arm, out),
    )


def choose_tasks(config: EvalConfig, say: Say = lambda line: None) -> tuple[Pair, ...]:
    """The tasks of an evaluation. A limit is shared out evenly between the splits.

    An entry of the source that is broken is told to `say` and left out, of all arms alike.

    Raises:
        TaskError: the source cannot be read, or no task is left.
    """
    wanted = config.tasks
    tasks = wanted_tasks(wanted, lambda error: say(f"passed over: {error}"))
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


def _sound(
    config: EvalConfig, tasks: tuple[Pair, ...], out: Path, control: Control, say: Say
) -> tuple[tuple[Pair, ...], tuple[FlakyTask, ...]]:
    """The tasks that their gold patch repairs every time, and the others. Raises TaskError where none is left."""
    if not config.flaky_runs:
        return tasks, ()
    say(f"gold patch of {len(tasks)} tasks, {config.flaky_runs} runs each")
    found = find_flaky(tasks, config.flaky_runs, config.sandbox, out / "gold.jsonl", control, config.workers)
    flaky = {one.task_id for one in found}
    sound = tuple(pair for pair in tasks if pair[0].id not in flaky)
    if not sound:
        raise TaskError(f"no task is repaired by its gold patch in each of {config.flaky_runs} runs: check the tasks")
    for one in found:
        say(f"left out: {one.task_id}, repaired by its gold patch in {one.passed} of {one.runs} runs")
    return sound, found


def _play(
    config: EvalConfig,
    tasks: tuple[Pair, ...],
    control: Control,
    hooks: Callable[[str], Hooks],
    make_place: MakePlace,
) -> list[PlayedArm]:
    ids = tuple(task.id for task, _ in tasks)
    players = [(arm, ArmPlayer(config, arm, ids, make_place) if arm.answers is None else None) for arm in config.arms]
    write_whole(Path(config.out) / "config.yaml", dump_config(config))
    played: list[PlayedArm] = []
    for arm, player in players:
        if player is None:
            played.append(answered_arm(config, arm, tasks, control))
        else:
            played.append(player.play(control, hooks(arm.name)))
        if played[-1].result.stopped is not None:
            break
    return played


def _score(
    config: EvalConfig, tasks: tuple[Pair, ...], played: Sequence[PlayedArm], out: Path, control: Control
) -> dict[str, list[Result]]:
    """Each arm's episodes, scored."""
    pairs = {task.id: (task, oracle) for task, oracle in tasks}
    episodes = [trajectory for one in played for _, trajectory in one.trajectories]
    fetched = fetch_sources(tasks, episodes, config.sandbox, out / "sources.jsonl", control, config.workers)
    scorers = make_scorers((task for task, _ in tasks), fetched)
    replayed = _replay(config, pairs, played, out, control) if config.replay else {}
    by_arm: dict[str, list[Result]] = {}
    for one in played:
        name = one.arm.name
        scored = [
            score_trajectory(name, trajectory, pairs[trajectory.task.id][1], scorers, sample=sample)
            for sample, trajectory in one.trajectories
        ]
        by_arm[name] = [
            result.model_copy(update={"scores": {**result.scores, "replayed": replayed.get((name, result.trajectory))}})
            for result in scored
        ]
    return by_arm


def _replay(
    config: EvalConfig, pairs: Mapping[str, Pair], played: Sequence[PlayedArm], out: Path, control: Control
) -> dict[tuple[str, str], float | None]:
    """The share of each episode's findings that were seen again, by arm and trajectory."""
    recorded = [
        Recorded(
            one.arm.name, pairs[trajectory.task.id][0], make_agent(one.arm.agent or config.agent).tools, trajectory
        )
        for one in played
        for _, trajectory in one.trajectories
    ]
    replays = Replays(out / "replays.jsonl", config.sandbox)
    replays.run(recorded, control, config.workers)
    return {(one.arm, one.trajectory.id): replays.share(one) for one in recorded}


def _main_arm(config: EvalConfig, played: Sequence[PlayedArm]) -> str | None:
    """The arm whose predictions are preds.jsonl: the one that the page is about, else the last."""
    return config.trace_arm or (played[-1].arm.name if played else None)


def _trajectories(played: Sequence[PlayedArm], repaired: Repaired) -> dict[str, Trajectory]:
    own = {f"{one.arm.name}/{trajectory.id}": trajectory for one in played for _, trajectory in one.trajectories}
    return own | {f"solver/{arm}/{one.id}": one for (arm, _, _), one in repaired.episodes.items()}


def _stopped(played: Sequence[PlayedArm], control: Control) -> str | None:
    early = next((one.result.stopped for one in played if one.result.stopped is not None), None)
    return early or ("interrupted" if control.finishing else None)


def _write(config: EvalConfig, summary: Summary, by_arm: Mapping[str, Sequence[Result]], out: Path) -> dict[str, Path]:
    files = {name: out / f"{name}.{kind}" for name, kind in (("results", "jsonl"), ("summary", "json"))}
    lines = (f"{result.model_dump_json()}\n" for of_arm in by_arm.values() for result in of_arm)
    write_whole(files["results"], "".join(lines))
    write_whole(files["summary"], json.dumps(summary.model_dump(mode="json"), indent=2) + "\n")
    write_whole(out / "timing.json", json.dumps(timing(config, by_arm), indent=2) + "\n")
    if (out / "preds.jsonl").exists():
        files["predictions"] = out / "preds.jsonl"
    return files

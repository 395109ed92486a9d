"""`gumshoe eval`: every arm on the same tasks, packs to solvers, scores, comparisons, files.

Everything is loaded and checked before any episode is run. What is on disk then grows in this order:

    gold.jsonl                                  with `flaky_runs`: whether the gold patch fixes each task every time
    config.yaml                                 that of this start
    arms/ARM/                                   run folders with the episodes, one by one
    solver/static.jsonl                         the packs of the arm `static`, in its turn, one by one
    answers.jsonl                               files of tasks in images that the answers of others name
    solver/, solver.jsonl, grades.jsonl         what solvers did, and the grades of patches, one by one
    sources.jsonl                               files of tasks in images that episodes name, to score functions
    preds/ARM.jsonl, preds.jsonl                patches
    results.jsonl, summary.json, timing.json    once before the official harness runs, and again with its verdicts
    finished.json                               what was run, if nothing stopped it: the same again has nothing to run
    harness/ARM/                                what the official harness reads and writes
"""

from __future__ import annotations

import json
import math
import os
import random
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from gumshoe.cache import digest
from gumshoe.collect.episode.spec import wanted_tasks
from gumshoe.collect.run.control import Control
from gumshoe.collect.run.runner import open_factories
from gumshoe.config import RUN_CONFIG, dump_config, earlier_config
from gumshoe.errors import ConfigError, DatasetError, TaskError
from gumshoe.eval.arms.arm import Arm, Attempt, AttemptKey, Checks, EvalRun, Hooks, Pair, Solution, Solver
from gumshoe.eval.arms.build import make_arms
from gumshoe.eval.config import EvalConfig
from gumshoe.eval.grader import find_flaky
from gumshoe.eval.records import ALL, FlakyTask, LossCurve, Prediction, Result, Summary
from gumshoe.eval.results import load_scorers, make_results, summarize, timing
from gumshoe.eval.swebench import check_rows, check_tools, grade_officially, with_official
from gumshoe.protocols import Scorer
from gumshoe.storage import read_json, read_jsonl, write_atomic, write_jsonl
from gumshoe.text import plural

Say = Callable[[str], None]
BASE_KB = 100 << 10
EPISODE_KB = 512
"""Disk space for the trajectory, grades and page of an episode; most take less."""
FINISHED = "finished.json"
SCORED_ANEW = {"harness", "metrics", "resamples", "title", "training_log"}
"""Keys of a config that make a difference to the scores, but not to what is run for them."""
LOSSES = (("loss", "training"), ("eval_loss", "held out"))
"""Columns of a training log, and what their curves are called."""


@dataclass(frozen=True)
class Evaluation:
    """The numbers, and the files with all results.

    `stopped` says why it ended early, `failure` why the official harness did not grade all.
    """

    summary: Summary
    tasks: tuple[Pair, ...]
    files: Sequence[Path]
    stopped: str | None
    failure: str | None


def evaluate(
    config: EvalConfig,
    control: Control,
    hooks: Callable[[str], Hooks] = lambda title: Hooks(),
    say: Say = lambda line: None,
) -> Evaluation:
    """Runs what is missing, scores everything and writes the files that the top of this module lists. All but the
    official harness's verdicts are written before it is run. The folder is resumed if it exists.

    `control` stops it, `hooks` gives the callbacks for an arm or a solver by its title, and `say` is called with a line
    for each part that takes a while. Raises GumshoeError if a config, task, model or server is wrong (everything found
    is named before any episode is run), or every attempt fails.
    """
    earlier_config(Path(config.out), EvalConfig, "eval")
    ready = _prepare(config, say)
    arms = ready.arms
    out = Path(config.out)
    out.mkdir(parents=True, exist_ok=True)
    tasks, flaky = _drop_flaky(config, ready.tasks, control, say)
    write_atomic(out / RUN_CONFIG, dump_config(config))
    with ExitStack() as stack:
        make_factory = stack.enter_context(open_factories(config.runner, config.ray))
        run = EvalRun(config, tasks, control, make_factory, ready.scorers)
        for solver in ready.solvers:
            stack.callback(solver.close)
        run = _collect_packs(arms, run, hooks)
        solutions = _solve(arms, run, hooks)
        results = make_results(arms, solutions, run)
    if control.aborting and any(task.workspace.path is None for task, _ in tasks):
        say("stopped at once: of tasks in images, functions are unscored where their files were not read yet")
    predictions = _write_predictions(results, config.main_arm, out)
    summary = summarize(run, flaky, arms, results, ready.losses)
    files = _write(config, summary, results, out)
    stopped = _stopped(run)
    if stopped is None:
        write_atomic(out / FINISHED, json.dumps(_what_is_run(config, ready.tasks)) + "\n")
    failure = None
    if config.harness is not None and not control.finishing:
        official = grade_officially(config, ready.rows, predictions, say)
        failure = official.failure
        results = with_official(results, official.reports)
        summary = summarize(run, flaky, arms, results, ready.losses)
        _write(config, summary, results, out)
    return Evaluation(summary, tasks, files, stopped, failure)


def _drop_flaky(
    config: EvalConfig, tasks: tuple[Pair, ...], control: Control, say: Say
) -> tuple[tuple[Pair, ...], tuple[FlakyTask, ...]]:
    """The tasks that their gold patch fixes every time, and the others. Raises TaskError if the others are too many."""
    if not config.flaky_runs:
        return tasks, ()
    runs, path = config.flaky_runs, Path(config.out) / "gold.jsonl"
    say(f"gold patch of {plural(len(tasks), 'task')}, {plural(runs, 'run')} each")
    flaky = find_flaky(tasks, runs, config.sandbox, path, control, config.workers)
    for one in flaky:
        say(f"left out: {one.task_id}, fixed by its gold patch in {one.passed} of {runs} runs ({one.why})")
    names = {one.task_id for one in flaky}
    sound = tuple(pair for pair in tasks if pair[0].id not in names)
    if not sound:
        raise TaskError(f"no task is fixed by its gold patch in each of {runs} runs: check the tasks")
    if len(flaky) > config.max_flaky * len(tasks):
        raise TaskError(
            f"{len(flaky)} of {len(tasks)} tasks are not fixed by their gold patch in each of {runs} runs, more than "
            f"max_flaky: {config.max_flaky:g} allows; they are listed above. Check the tasks, or raise max_flaky"
        )
    return sound, flaky


def _collect_packs(arms: Sequence[Arm], run: EvalRun, hooks: Callable[[str], Hooks]) -> EvalRun:
    """The run with the packs of its arms; each arm is given the packs of those before it.

    When one arm is stopped, the remaining arms do not start.
    """
    for arm in arms:
        collected = arm.packs.collect(run, hooks(arm.title))
        run = replace(run, packs={**run.packs, arm.name: collected})
        if collected.stopped is not None:
            break
    return run


def _solve(arms: Sequence[Arm], run: EvalRun, hooks: Callable[[str], Hooks]) -> dict[AttemptKey, Solution]:
    """The outcome of every pack; each solver gets all attempts of its arms at once."""
    attempts: dict[Solver, list[Attempt]] = {}
    for arm in arms:
        if arm.solver is not None and arm.name in run.packs:
            attempts.setdefault(arm.solver, []).extend(_attempts(arm, run))
    solutions: dict[AttemptKey, Solution] = {}
    for solver, of_solver in attempts.items():
        solutions.update(solver.solve(of_solver, run, hooks(solver.title)))
    return solutions


def _attempts(arm: Arm, run: EvalRun) -> list[Attempt]:
    packs, pairs = run.packs[arm.name], run.pairs
    return [
        Attempt(arm.name, *pairs[task], pack, sample, packs.episodes.get((task, sample)))
        for (task, sample), pack in packs.packs.items()
    ]


def _stopped(run: EvalRun) -> str | None:
    early = next((one.stopped for one in run.packs.values() if one.stopped is not None), None)
    return early or ("interrupted" if run.control.finishing else None)


def _write(config: EvalConfig, summary: Summary, by_arm: Mapping[str, Sequence[Result]], out: Path) -> list[Path]:
    write_jsonl(out / "results.jsonl", (result for of_arm in by_arm.values() for result in of_arm))
    write_atomic(out / "summary.json", json.dumps(summary.model_dump(mode="json"), indent=2) + "\n")
    write_atomic(out / "timing.json", json.dumps(timing(config, by_arm), indent=2) + "\n")
    return [path for name in ("results.jsonl", "summary.json", "preds.jsonl") if (path := out / name).exists()]


def _write_predictions(by_arm: Mapping[str, Sequence[Result]], main: str, out: Path) -> dict[str, list[Prediction]]:
    """Writes preds/ARM.jsonl for each arm that was to fix the bugs, and preds.jsonl for the arm `main`, if it was.

    The first sample of each task is predicted, even if it changed nothing.
    """
    predictions = {
        arm: [
            Prediction(instance_id=one.task_id, model_name_or_path=f"gumshoe-{arm}", model_patch=one.patch)
            for one in results
            if one.sample == 0 and "solved" in one.scores
        ]
        for arm, results in by_arm.items()
    }
    predictions = {arm: of_arm for arm, of_arm in predictions.items() if of_arm}
    for arm, of_arm in predictions.items():
        (out / "preds").mkdir(exist_ok=True)
        write_jsonl(out / "preds" / f"{arm}.jsonl", of_arm)
    if main in predictions:
        write_jsonl(out / "preds.jsonl", predictions[main])
    return predictions


@dataclass(frozen=True)
class _Prepared:
    """What an evaluation is made of. `rows` are those for the official harness; empty if it is not used."""

    arms: tuple[Arm, ...]
    solvers: tuple[Solver, ...]
    tasks: tuple[Pair, ...]
    scorers: tuple[Scorer, ...]
    rows: Sequence[Mapping[str, Any]]
    losses: tuple[LossCurve, ...]


def _prepare(config: EvalConfig, say: Callable[[str], None]) -> _Prepared:
    """Makes the arms, loads the tasks, and has every part check itself.

    Servers and sandboxes are checked only if something seems to be left to run: what is finished takes neither, but for
    sandboxes for patches that could not be graded before, and for files of images that were not read before. What is
    left is counted without knowing the packs, so it may be too much where packs are missing or equal, and too little
    once the solver has been changed: then a fault shows only when it is met.

    Raises GumshoeError with a line for each fault; where an agent cannot be made, no arm and no server is checked.
    """
    checks = Checks()
    arms: tuple[Arm, ...] = ()
    tasks: tuple[Pair, ...] = ()
    scorers: tuple[Scorer, ...] = ()
    rows: Sequence[Mapping[str, Any]] = ()
    losses: tuple[LossCurve, ...] = ()
    with checks.collect():
        arms = make_arms(config)
    with checks.collect():
        scorers = load_scorers(config.metrics)
    with checks.collect():
        losses = read_losses(config.training_log)
    with checks.collect():
        tasks = choose_tasks(config, say)
    if config.harness is not None:
        with checks.collect():
            check_tools()
        with checks.collect():
            rows = check_rows(config, {task.id for task, _ in tasks})
    # Even if no task can be loaded, the servers are checked.
    attempts = 0 if _is_finished(config, tasks) else max(1, len(tasks)) * config.tasks.samples
    left = sum(arm.packs.check(tasks, attempts, checks) for arm in arms)
    solvers = [arm.solver for arm in arms if arm.solver is not None]
    unique = tuple({id(solver): solver for solver in solvers}.values())
    left += sum(solver.check(tasks, attempts * solvers.count(solver), checks) for solver in unique)
    if left and config.runner == "threads":  # With Ray, the sandboxes are on other machines.
        command = None if config.solver is None else config.solver.command
        checks.sandboxes(tasks, config.sandbox if command is None else command.sandbox_in(config.sandbox))
    with checks.collect():
        check_disk(Path(config.out), left)
    checks.report()
    return _Prepared(arms, unique, tasks, scorers, rows, losses)


def _is_finished(config: EvalConfig, tasks: Sequence[Pair]) -> bool:
    """Whether this was run before, to the end.

    What is on disk does not tell: arms may have fewer packs than there are tasks, and what a solver makes of equal
    packs is kept once.
    """
    file = Path(config.out) / FINISHED
    return file.exists() and read_json(file) == _what_is_run(config, tasks)


def _what_is_run(config: EvalConfig, tasks: Sequence[Pair]) -> str:
    return digest(config.model_dump(mode="json", exclude=SCORED_ANEW), [task.hash for task, _ in tasks])


def check_disk(out: Path, episodes: int) -> None:
    """Raises ConfigError if the folder cannot be written, or its disk has no room for the episodes."""
    place = next(path for path in (out.absolute(), *out.absolute().parents) if path.exists())
    if not place.is_dir():
        raise ConfigError(f"the folder {out} cannot be created: {place} is a file")
    if not os.access(place, os.W_OK):
        raise ConfigError(f"the folder {out} cannot be created: {place} is not writable")
    free, wanted = shutil.disk_usage(place).free >> 20, (BASE_KB + EPISODE_KB * episodes) >> 10
    if free < wanted:
        raise ConfigError(f"the disk of {out} has {free} MB free; {episodes} episodes may take {wanted} MB")


def choose_tasks(config: EvalConfig, say: Callable[[str], None] = lambda line: None) -> tuple[Pair, ...]:
    """The tasks of an evaluation. A limit is shared out evenly between the splits.

    A broken entry of the source is reported to `say` and left out of all arms. Raises TaskError if the source cannot be
    read, or no task is left.
    """
    wanted = config.tasks
    tasks = wanted_tasks(wanted, lambda error: say(f"skipped: {error}"))
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


def read_losses(training_log: str | None) -> tuple[LossCurve, ...]:
    """The training and the held-out loss in the log of a training run: JSON lines with `step`, `loss`, `eval_loss`.

    Rows without a step or a finite loss, which trainers also write, are left out. Raises DatasetError.
    """
    if training_log is None:
        return ()
    path = Path(training_log)
    if not path.exists():
        raise DatasetError(f"there is no training log {path}: correct training_log, or set it to null")
    rows = [row for _, row in read_jsonl(path)]
    curves = [LossCurve(label=label, points=_loss_points(rows, column)) for column, label in LOSSES]
    return tuple(curve for curve in curves if curve.points)


def _loss_points(rows: Iterable[Any], column: str) -> tuple[tuple[float, float], ...]:
    points: dict[float, float] = {}
    for row in rows:
        step, loss = (row.get("step"), row.get(column)) if isinstance(row, dict) else (None, None)
        if isinstance(step, (int, float)) and isinstance(loss, (int, float)) and math.isfinite(loss):
            points[float(step)] = float(loss)
    return tuple(sorted(points.items()))

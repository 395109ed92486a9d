"""Everything that an evaluation needs, loaded and checked before it runs anything."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from gumshoe.collect.run.runner import wanted_tasks
from gumshoe.errors import DatasetError
from gumshoe.eval.arms.arm import Arm, Pair, Solver
from gumshoe.eval.arms.build import make_arms
from gumshoe.eval.checks import Checks, check_disk
from gumshoe.eval.config import EvalConfig
from gumshoe.eval.records import ALL, LossCurve
from gumshoe.eval.scoring import load_scorers
from gumshoe.eval.swebench.official import check_installed, check_rows
from gumshoe.storage import read_jsonl

__all__ = ["Prepared", "choose_tasks", "prepare", "read_losses"]

LOSSES = (("loss", "training"), ("eval_loss", "held out"))
"""Columns of a training log, and what their curves are called."""


@dataclass(frozen=True)
class Prepared:
    """What an evaluation is made of. `rows` are those for the official harness; empty if it is not used."""

    arms: tuple[Arm, ...]
    solvers: tuple[Solver, ...]
    tasks: tuple[Pair, ...]
    rows: Sequence[Mapping[str, Any]]
    losses: tuple[LossCurve, ...]


def prepare(config: EvalConfig, say: Callable[[str], None]) -> Prepared:
    """Makes the arms, loads the tasks, and has every part check itself.

    Servers and sandboxes are checked only if episodes are left: what is finished can be scored without them.

    Raises:
        GumshoeError: something is missing or wrong. The message has a line for each fault.
    """
    checks = Checks()
    arms = make_arms(config)
    tasks: tuple[Pair, ...] = ()
    rows: Sequence[Mapping[str, Any]] = ()
    losses: tuple[LossCurve, ...] = ()
    with checks.collect():
        load_scorers(config.metrics)
    with checks.collect():
        losses = read_losses(config.training_log)
    with checks.collect():
        tasks = choose_tasks(config, say)
    if config.harness is not None:
        with checks.collect():
            check_installed()
        with checks.collect():
            rows = check_rows(config, {task.id for task, _ in tasks})
    # Even if no task can be loaded, the servers are checked.
    attempts = max(1, len(tasks)) * config.tasks.samples
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
    return Prepared(arms, unique, tasks, rows, losses)


def choose_tasks(config: EvalConfig, say: Callable[[str], None] = lambda line: None) -> tuple[Pair, ...]:
    """The tasks of an evaluation. A limit is shared out evenly between the splits.

    A broken entry of the source is reported to `say` and left out of all arms.

    Raises:
        TaskError: the source cannot be read, or no task is left.
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

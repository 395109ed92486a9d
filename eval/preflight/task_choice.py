"""Which tasks an evaluation runs on."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import zip_longest

from gumshoe.collect.run.runner import wanted_tasks
from gumshoe.eval.arms.arm import Pair
from gumshoe.eval.config import EvalConfig
from gumshoe.eval.records import ALL

__all__ = ["choose_tasks"]


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

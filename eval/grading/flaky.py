"""Flaky tasks: those that their own gold patch does not fix every time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gumshoe.cache import JsonlCache, digest
from gumshoe.collect.run.control import Control
from gumshoe.collect.run.parallel import run_parallel
from gumshoe.env.config import SandboxConfig
from gumshoe.env.verifier.verifier import Verifier
from gumshoe.eval.records import FlakyTask
from gumshoe.records import Oracle, Task

__all__ = ["find_flaky"]


def find_flaky(
    tasks: Sequence[tuple[Task, Oracle]],
    runs: int,
    sandbox: SandboxConfig,
    path: Path,
    control: Control,
    workers: int,
) -> tuple[FlakyTask, ...]:
    """The tasks that their gold patch does not resolve in every one of `runs` runs of the tests.

    Results are kept in the file `path`. Raises SandboxError, or TaskError if a gold patch does not apply.
    """
    cache = JsonlCache(path)

    def key(task: Task, oracle: Oracle) -> str:
        return digest(task.hash, oracle.gold_patch, runs)

    def work(pair: tuple[Task, Oracle]) -> None:
        passed, why = _gold_runs(*pair, runs, sandbox)
        cache.keep(key(*pair), {"task_id": pair[0].id, "passed": passed, "runs": runs, "why": why})

    run_parallel([pair for pair in tasks if cache.get(key(*pair)) is None], work, workers=workers, control=control)
    known = [cache.get(key(task, oracle)) for task, oracle in tasks]
    return tuple(FlakyTask.model_validate(facts) for facts in known if facts is not None and facts["passed"] < runs)


def _gold_runs(task: Task, oracle: Oracle, runs: int, config: SandboxConfig) -> tuple[int, str]:
    """How many of `runs` runs of the gold patch, each from the same files, resolve the task; and why the first of the
    others does not.
    """
    with Verifier(task, oracle, config, trusted=True) as verifier:
        said = [verifier.verify(oracle.gold_patch).explanation for _ in range(runs)]
    return said.count(""), next(filter(None, said), "")

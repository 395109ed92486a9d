"""The check stage: each task of a package is proven from the files of its set alone; those that fail are dropped."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from gumshoe.cache import JsonlCache
from gumshoe.env.config import SandboxConfig
from gumshoe.env.sandboxes.compiling import compile_tests
from gumshoe.env.tasks.taskset import load_taskset, write_taskset
from gumshoe.env.verifier.check import CheckResult, check_task
from gumshoe.env.verifier.repaired import RepairedRuns
from gumshoe.records import Oracle, Task
from gumshoe.storage import read_records

__all__ = ["check_package"]

JOURNAL = "check.jsonl"


def check_package(folder: Path, config: SandboxConfig, say: Callable[[str], None]) -> tuple[int, dict[str, str]]:
    """Checks the set in `folder` and leaves the proven tasks in it, each with what makes its tests fail.

    Returns how many these are, and what was wrong with each of the others.
    """
    rejected: dict[str, str] = {}
    proven: dict[str, Oracle] = {}
    pairs = load_taskset(folder)
    cache = JsonlCache(folder / JOURNAL)
    repaired = RepairedRuns(config)
    compile_tests((task for task, _ in pairs), config)
    for number, (task, oracle) in enumerate(pairs, 1):
        say(f"{number} of {len(pairs)}, {len(rejected)} rejected")
        check = partial(check_task, task, oracle, config, repaired)
        found = cache.find(f"{task.hash} {config.kind}", lambda check=check: _facts(check()))
        if found["found"]:
            rejected[task.id] = found["found"][0]
        else:
            proven[task.id] = Oracle.model_validate({**dict(oracle), "falsifiable": found["falsifiable"]})
    stored = {task.id: task for task in read_records(folder / "tasks.jsonl", Task)}
    write_taskset(folder, [(stored[name], oracle) for name, oracle in proven.items()])
    return len(pairs) - len(rejected), rejected


def _facts(result: CheckResult) -> dict[str, Any]:
    return {"found": list(result.problems), "falsifiable": result.falsifiable}

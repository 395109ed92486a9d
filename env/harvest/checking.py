"""The check stage: each task of a package is proven from the files of its set alone; those that fail are dropped."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gumshoe.env.config import SandboxConfig
from gumshoe.env.tasks.taskset import load_taskset, write_taskset
from gumshoe.env.verifier.check import check_task
from gumshoe.records import Record, Task
from gumshoe.storage import append_line, open_append, read_records

__all__ = ["check_package"]

JOURNAL = "checks.jsonl"


class _Checked(Record):
    """One line of the journal: a killed check goes on behind it."""

    key: str
    problems: tuple[str, ...]


def check_package(folder: Path, config: SandboxConfig, say: Callable[[str], None]) -> tuple[int, dict[str, str]]:
    """Checks the set in `folder` and leaves the proven tasks in it.

    Returns how many these are, and what was wrong with each of the others.
    """
    known = {item.key: item.problems for item in _journal(folder / JOURNAL)}
    rejected: dict[str, str] = {}
    pairs = load_taskset(folder)
    with open_append(folder / JOURNAL) as journal:
        for number, (task, oracle) in enumerate(pairs, 1):
            say(f"{number} of {len(pairs)}, {len(rejected)} rejected")
            key = f"{task.hash} {config.kind}"
            if key not in known:
                known[key] = check_task(task, oracle, config).problems
                append_line(journal, _Checked(key=key, problems=known[key]).model_dump_json())
            if known[key]:
                rejected[task.id] = known[key][0]
    if rejected:
        stored = {task.id: task for task in read_records(folder / "tasks.jsonl", Task)}
        write_taskset(folder, [(stored[task.id], oracle) for task, oracle in pairs if task.id not in rejected])
    return len(pairs) - len(rejected), rejected


def _journal(path: Path) -> list[_Checked]:
    return list(read_records(path, _Checked, finished=True)) if path.exists() else []

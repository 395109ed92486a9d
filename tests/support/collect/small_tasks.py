"""Task sets made on the spot: a function with one wrong line, and a script that checks it."""

from __future__ import annotations

from pathlib import Path

from gumshoe.env.diff import make_patch
from gumshoe.env.tasks.taskset import write_taskset
from gumshoe.records import Limits, Oracle, Task, WorkspaceSpec

__all__ = ["CHECK", "CLEAN", "make_task", "make_taskset"]

CLEAN = '''\
"""Prices."""


def discount(total, members):
    """Ten off for members."""
    if members:
        total = total - 10
    return total


def price(items, members):
    """Sum of the items, less the discount."""
    total = sum(items)
    return discount(total, members)
'''
CHECK = """\
from shop import price

assert price([20, 30], False) == 50
result = price([20, 30], True)
assert result == 40, "members pay %d" % result
"""


def make_task(repo: Path, number: int) -> tuple[Task, Oracle]:
    """Task `number`: the discount is off by that much."""
    repo.mkdir(parents=True, exist_ok=True)
    (repo / "shop.py").write_text(CLEAN, encoding="utf-8")
    (repo / "check.py").write_text(CHECK, encoding="utf-8")
    buggy = CLEAN.replace("total - 10", f"total - {11 + number}")
    task = Task(
        id=f"shop/{number}",
        source="synth",
        problem_statement=f"Members get {11 + number} off instead of 10.\n",
        workspace=WorkspaceSpec(path=str(repo), overlay={"shop.py": buggy}),
        entrypoint=("python", "check.py"),
        readonly=("check.py",),
        limits=Limits(steps=20, command_timeout_s=60),
        tags={"project": f"shop{number % 3}", "split": "train"},
    )
    return task, Oracle(task_id=task.id, gold_patch=make_patch({"shop.py": (buggy.encode(), CLEAN.encode())}))


def make_taskset(folder: Path, count: int) -> Path:
    """A folder with tasks.jsonl and oracles.jsonl."""
    write_taskset(folder, [make_task(folder / "repo", number) for number in range(count)])
    return folder

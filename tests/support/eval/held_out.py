"""Task sets made on the spot: a shop with one wrong line, in two splits."""

from __future__ import annotations

from pathlib import Path

from gumshoe.env.diff import make_patch
from gumshoe.env.tasks.taskset import write_taskset
from gumshoe.records import Limits, Oracle, Task, WorkspaceSpec

CLEAN = """\
def discount(total, members):
    if members:
        total = total - 10
    return total


def price(items, members):
    return discount(sum(items), members)
"""
CHECK = """\
from shop import price


def test_guests():
    assert price([20, 30], False) == 50


def test_members():
    assert price([20, 30], True) == 40
"""


def make_pair(repo: Path, number: int) -> tuple[Task, Oracle]:
    buggy = CLEAN.replace("total - 10", f"total - {11 + number}")
    task = Task(
        id=f"shop/{number}",
        source="synth",
        problem_statement=f"Members get {11 + number} off instead of 10.",
        workspace=WorkspaceSpec(path=str(repo), overlay={"shop.py": buggy}),
        entrypoint=("python", "-m", "pytest", "-q", "-p", "no:cacheprovider"),
        readonly=("test_shop.py",),
        limits=Limits(steps=20, command_timeout_s=60),
        tags={"project": "shop", "split": "heldout_bugs" if number % 3 else "heldout_projects"},
    )
    return task, Oracle(task_id=task.id, gold_patch=make_patch({"shop.py": (buggy.encode(), CLEAN.encode())}))


def make_taskset(folder: Path, count: int) -> Path:
    """A folder with tasks.jsonl and oracles.jsonl; every third task is of another split."""
    repo = folder / "repo"
    repo.mkdir(parents=True)
    (repo / "shop.py").write_text(CLEAN, encoding="utf-8")
    (repo / "test_shop.py").write_text(CHECK, encoding="utf-8")
    write_taskset(folder, [make_pair(repo, number) for number in range(count)])
    return folder

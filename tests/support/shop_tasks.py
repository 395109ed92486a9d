"""Task sets made on the spot: a shop with one wrong line, checked by a script or by pytest."""

from pathlib import Path
from typing import Literal

from gumshoe.env.diff import make_patch
from gumshoe.env.tasks.taskset import write_taskset
from gumshoe.records import Limits, Oracle, Task, WorkspaceSpec
from support.folder_tasks import write_files

Runner = Literal["script", "pytest"]

PLAIN = """\
def discount(total, members):
    if members:
        total = total - 10
    return total


def price(items, members):
    return discount(sum(items), members)
"""
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
SCRIPT = """\
from shop import price

assert price([20, 30], False) == 50
result = price([20, 30], True)
assert result == 40, "members pay %d" % result
"""
TESTS = """\
from shop import price


def test_guests():
    assert price([20, 30], False) == 50


def test_members():
    assert price([20, 30], True) == 40
"""


def make_task(repo: Path, number: int, *, runner: Runner = "script") -> tuple[Task, Oracle]:
    """Task `number`: the discount is off by that much. Those for pytest are held out, in two splits."""
    if runner == "script":
        clean, check, text, entrypoint = CLEAN, "check.py", SCRIPT, ("python", "check.py")
        split = "train"
    else:
        clean, check, text = PLAIN, "test_shop.py", TESTS
        entrypoint = ("python", "-m", "pytest", "-q", "-p", "no:cacheprovider")
        split = "heldout_bugs" if number % 3 else "heldout_projects"
    write_files(repo, {"shop.py": clean, check: text})
    buggy = clean.replace("total - 10", f"total - {11 + number}")
    task = Task(
        id=f"shop/{number}",
        source="synth",
        problem_statement=f"Members get {11 + number} off instead of 10.\n",
        workspace=WorkspaceSpec(path=str(repo), overlay={"shop.py": buggy}),
        entrypoint=entrypoint,
        readonly=(check,),
        limits=Limits(steps=20, command_timeout_s=60),
        tags={"project": f"shop{number % 3}", "split": split},
    )
    return task, Oracle(task_id=task.id, gold_patch=make_patch({"shop.py": (buggy.encode(), clean.encode())}))


def make_taskset(folder: Path, count: int, *, runner: Runner = "script") -> Path:
    """A folder with tasks.jsonl and oracles.jsonl."""
    write_taskset(folder, [make_task(folder / "repo", number, runner=runner) for number in range(count)])
    return folder

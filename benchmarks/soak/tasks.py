"""The tasks of the soak: one small project, with as many bugs as are wanted."""

from __future__ import annotations

from pathlib import Path

from gumshoe.env.diff import make_patch
from gumshoe.env.tasks.taskset import write_taskset
from gumshoe.records import Oracle, Task, WorkspaceSpec

CLEAN = "def total(items):\n    return sum(items)\n"
TESTS = """import unittest

from shop import total


class TotalTest(unittest.TestCase):
    def test_total(self):
        self.assertEqual(total([20, 30]), 50)
"""


def make_tasks(folder: Path, count: int) -> Path:
    """A set of that many small tasks, each with a bug of its own."""
    repo = folder / "repo"
    repo.mkdir(parents=True, exist_ok=True)
    (repo / "shop.py").write_text(CLEAN, encoding="utf-8")
    (repo / "test_shop.py").write_text(TESTS, encoding="utf-8")
    pairs: list[tuple[Task, Oracle]] = []
    for number in range(count):
        buggy = CLEAN.replace("sum(items)", f"sum(items) + {number + 1}")
        task = Task(
            id=f"soak/{number:04d}",
            source="synth",
            problem_statement=f"The total is {number + 1} too large.\n",
            workspace=WorkspaceSpec(path=str(repo), overlay={"shop.py": buggy}),
            entrypoint=("python", "-m", "unittest", "-v", "test_shop"),
            readonly=("test_shop.py",),
            tags={"project": f"soak{number % 20}", "split": "train"},
        )
        patch = make_patch({"shop.py": (buggy.encode(), CLEAN.encode())})
        oracle = Oracle(task_id=task.id, gold_patch=patch, fail_to_pass=("test_shop.TotalTest.test_total",))
        pairs.append((task, oracle))
    write_taskset(folder, pairs)
    return folder

"""A repository with a bug that only a hidden test shows."""

from __future__ import annotations

from pathlib import Path

from gumshoe.env.diff import make_patch
from gumshoe.records import Oracle, Task, WorkspaceSpec

__all__ = ["BUGGY", "CLEAN", "hidden_pair"]

BUGGY, CLEAN = b"def add(a, b):\n    return a - b\n", b"def add(a, b):\n    return a + b\n"


def hidden_pair(folder: Path, visible: bytes, hidden: bytes) -> tuple[Task, Oracle]:
    """The task, made in `folder`, and its answer.

    Args:
        visible: the tests that the agent finds.
        hidden: those that decide.
    """
    (folder / "calc.py").write_bytes(BUGGY)
    (folder / "test_calc.py").write_bytes(visible)
    task = Task(
        id="calc",
        source="test",
        problem_statement="add is wrong",
        workspace=WorkspaceSpec(path=str(folder)),
        entrypoint=("python", "-m", "pytest", "-q"),
        regime="issue",
    )
    oracle = Oracle(
        task_id="calc",
        gold_patch=make_patch({"calc.py": (BUGGY, CLEAN)}),
        test_patch=make_patch({"test_calc.py": (visible, hidden)}),
        fail_to_pass=("test_calc.py::test_add",),
    )
    return task, oracle

"""Tasks for solvers: one function that is wrong, and one task whose tests are flaky."""

from __future__ import annotations

from pathlib import Path

from gumshoe.env.diff import make_patch
from gumshoe.env.tasks.taskset import write_taskset
from gumshoe.records import Limits, Oracle, Task, WorkspaceSpec

__all__ = ["write_tasks"]

CHECK = "from parts import twice\n\n\ndef test_twice():\n    assert twice(2) == 4\n"


LUCK = """\
import pathlib


def test_luck():
    with pathlib.Path('{runs}').open('a+') as runs:
        runs.write('.')
        runs.seek(0)
        assert len(runs.read()) <= 2
"""
"""Passes in the two runs of the first verdict."""


def parts(*, clean: bool) -> str:
    return f"def twice(n):\n    return n * 2{'' if clean else ' + 1'}\n"


def write_tasks(folder: Path, count: int) -> Path:
    """Tasks that differ in their statement; the last one's tests pass in the first verdict only."""
    repo, lucky = folder / "repo", folder / "lucky"
    for place in (repo, lucky):
        place.mkdir(parents=True)
        (place / "parts.py").write_text(parts(clean=False))
        (place / "test_parts.py").write_text(CHECK)
    (lucky / "test_luck.py").write_text(LUCK.format(runs=folder / "runs"))
    gold = make_patch({"parts.py": (parts(clean=False).encode(), parts(clean=True).encode())})
    pairs = [
        (
            Task(
                id=f"parts/{number}",
                source="synth",
                problem_statement=f"twice() of customer {number} gives too much.",
                workspace=WorkspaceSpec(path=str(lucky if number == count - 1 else repo)),
                entrypoint=("python", "-m", "pytest", "-q", "-p", "no:cacheprovider"),
                readonly=("test_*.py",),
                limits=Limits(steps=6, command_timeout_s=60),
            ),
            Oracle(
                task_id=f"parts/{number}",
                gold_patch=gold,
                fail_to_pass=("test_parts.py::test_twice",),
                pass_to_pass=("test_luck.py::test_luck",) if number == count - 1 else (),
            ),
        )
        for number in range(count)
    ]
    write_taskset(folder, pairs)
    return folder

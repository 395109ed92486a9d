"""The bugs that an evaluation draws from a harvested set."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from gumshoe.env.tasks.load import load_tasks
from gumshoe.env.tasks.taskset import write_taskset
from gumshoe.records import Oracle, Task, WorkspaceSpec

SOURCE = "benchmarks.results.drawn_bugs:draw"


def package(folder: Path, name: str, suspects: list[str], *, done: bool = True, suite_s: float = 1.0) -> None:
    """The set of a package with one bug for each tag."""
    (folder / "packages" / name / "projects").mkdir(parents=True)
    tasks = [
        Task(
            id=f"synth/{name}/{number}",
            source="synth",
            problem_statement="It fails.",
            workspace=WorkspaceSpec(path="projects"),
            entrypoint=("python", "-m", "pytest"),
            tags={"project": name, "suspect": suspect},
        )
        for number, suspect in enumerate(suspects)
    ]
    pairs = [(task, Oracle(task_id=task.id, gold_patch="")) for task in tasks]
    write_taskset(folder / "packages" / name, pairs)
    report = {"done": done, "verified": len(tasks), "suite_s": suite_s}
    (folder / "packages" / name / "report.json").write_text(json.dumps(report))


def test_three_in_four_are_hard_and_packages_seen_slow_or_unfinished_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])
    package(tmp_path, "many", ["first"] * 20 + ["tied"] * 10 + ["below"] * 10)
    package(tmp_path, "easy", ["first"] * 20 + ["none"] * 3)
    package(tmp_path, "seen", ["tied"] * 20)
    package(tmp_path, "slow", ["tied"] * 20, suite_s=60)
    package(tmp_path, "unfinished", ["tied"] * 20, done=False)
    drawn = [task for task, _ in load_tasks(SOURCE, path=str(tmp_path), leave_out=["seen"])]
    found = Counter((task.tags["project"], task.tags["suspect"] == "first") for task in drawn)
    assert found == {("many", False): 9, ("many", True): 3, ("easy", False): 3, ("easy", True): 1}
    package(tmp_path, "later", ["tied"] * 4)
    again = [task.id for task, _ in load_tasks(SOURCE, path=str(tmp_path), leave_out=["seen"])]
    assert {task.id for task in drawn} < set(again)
    only = load_tasks(SOURCE, path=str(tmp_path), packages=["easy"])
    assert {task.tags["project"] for task, _ in only} == {"easy"}

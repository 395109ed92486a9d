"""The scripts of benchmarks/results: which bugs are drawn, what the model of `suspects` is fitted on, the tables."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from benchmarks.results import ranker
from gumshoe.env.tasks import load_tasks
from gumshoe.env.tasks.taskset import write_taskset
from gumshoe.records import Oracle, Task, WorkspaceSpec

ROOT = Path(__file__).parents[2]


def package(folder: Path, name: str, suspects: list[str], *, done: bool = True, suite_s: float = 1.0) -> None:
    """The set of a package with one bug for each tag."""
    place = folder / "packages" / name
    (place / "projects").mkdir(parents=True)
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
    write_taskset(place, [(task, Oracle(task_id=task.id, gold_patch="")) for task in tasks])
    (place / "report.json").write_text(json.dumps({"done": done, "verified": len(tasks), "suite_s": suite_s}))


def test_three_in_four_are_hard_and_packages_seen_slow_or_unfinished_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)

    def draw(**options: Any) -> list[Task]:
        return [task for task, _ in load_tasks("benchmarks.results.drawn_bugs:draw", path=str(tmp_path), **options)]

    package(tmp_path, "many", ["first"] * 20 + ["tied"] * 10 + ["below"] * 10)
    package(tmp_path, "easy", ["first"] * 20 + ["none"] * 3)
    package(tmp_path, "seen", ["tied"] * 20)
    package(tmp_path, "slow", ["tied"] * 20, suite_s=60)
    package(tmp_path, "unfinished", ["tied"] * 20, done=False)
    drawn = draw(leave_out=["seen"])
    found = Counter((task.tags["project"], task.tags["suspect"] == "first") for task in drawn)
    assert found == {("many", False): 9, ("many", True): 3, ("easy", False): 3, ("easy", True): 1}
    package(tmp_path, "later", ["tied"] * 4)
    assert {task.id for task in drawn} < {task.id for task in draw(leave_out=["seen"])}
    assert {task.tags["project"] for task in draw(packages=["easy"])} == {"easy"}


def bug(number: int, rng: random.Random) -> dict[str, Any]:
    """A bug of four functions. The fix edits the one that the failing test names."""
    right = rng.randrange(4)
    functions = [
        [f"shop.py:f{one}", {name: rng.random() for name in ranker.NAMES} | {"in_test": float(one == right)}]
        for one in range(4)
    ]
    suspects = [name for name, _ in functions]
    known = {"task": f"t{number}", "project": f"p{number % 7}", "functions": functions, "suspects": suspects}
    return {**known, "edited": [f"shop.py:f{right}"], "traceback": suspects[:1]}


def test_the_signal_that_decides_gets_the_weight(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(5)
    bugs = [bug(number, rng) for number in range(140)]
    model = ranker.fit(bugs)
    assert max(model, key=lambda name: model[name]["weight"]) == "in_test"
    found = ranker.accuracies(bugs, ranker.cross_validated(bugs))
    assert sum(found["function@1"]) >= 130
    assert found["file@1"] == [1.0] * 140
    missed = {**bugs[0], "task": "other", "edited": ["cart.py:g"]}
    rows, out = tmp_path / "bugs.jsonl", tmp_path / "ranker.json"
    rows.write_text("".join(f"{json.dumps(one)}\n" for one in [*bugs, missed, {**missed, "edited": []}]))
    monkeypatch.setattr("sys.argv", ["ranker", "fit", str(rows), "--out", str(out)])
    ranker.main()
    written = json.loads(out.read_text())
    assert (written["card"]["bugs"]["bugs"], written["elsewhere"]) == (141, round(2 / 142, 3))
    assert list(written["signals"]) == list(ranker.NAMES)


def test_a_bug_is_recorded_once(tmp_path: Path) -> None:
    task, oracle = load_tasks("casebook")[0]
    found = ranker.record(task, oracle)
    assert [name for name, _ in found["functions"]].count(found["edited"][0]) == 1
    assert set(found["suspects"]) <= {name for name, _ in found["functions"]}
    assert set(found["functions"][0][1]) == set(ranker.NAMES)
    rows = tmp_path / "bugs.jsonl"
    rows.write_text(json.dumps(found) + "\n")
    ranker.record_all([], rows, 1)
    assert len(rows.read_text().splitlines()) == 1
    assert "first suspect" in ranker.compare([found], {"first suspect": lambda one: one["suspects"]})


# --- the tables and the picture -----------------------------------------------------------------------------------


def row(arm: str, task: str, suspect: str, right: float) -> str:
    scores = {"function_acc@1": right, "file_acc@1": right, "steps": 2.0, "seconds": 3.0}
    return json.dumps({"arm": arm, "task_id": task, "tags": {"suspect": suspect}, "scores": scores})


def solved_row(arm: str, task: str, fixed: float) -> str:
    scores = {"solved": fixed, "adherence": 1.0, "solver_tokens": 500.0}
    return json.dumps({"arm": arm, "task_id": task, "tags": {"suspect": "tied"}, "scores": scores})


def write(folder: Path, arms: Sequence[dict[str, Any]], rows: Sequence[str]) -> None:
    """An evaluation as far as the scripts read it; every arm seeks unless it says otherwise."""
    folder.mkdir(exist_ok=True)
    (folder / "summary.json").write_text(json.dumps({"arms": [{"seeks": True, **arm} for arm in arms]}))
    (folder / "results.jsonl").write_text("".join(f"{one}\n" for one in rows))


def run_script(name: str, *arguments: Path | str, code: int = 0) -> str:
    """What a script prints, to whichever stream."""
    argv = [sys.executable, "-m", f"benchmarks.results.{name}", *map(str, arguments)]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


SUSPECT = {"name": "suspect", "title": "first suspect"}


def test_the_tables_count_hard_bugs_apart_and_compare_bug_by_bug(tmp_path: Path) -> None:
    rows = [row("suspect", f"a{n}", "first", 1.0) for n in range(2)]
    rows += [row("suspect", f"b{n}", "tied", 0.0) for n in range(6)]
    rows += [row("model", "a0", "first", 1.0), row("model", "a1", "first", 0.0)]
    rows += [row("model", f"b{n}", "tied", 1.0) for n in range(6)]
    rows += [row("suspect", "unfinished", "tied", 0.0)]
    write(tmp_path, [SUSPECT, {"name": "model", "title": "a model"}], rows)
    printed = run_script("results_table", tmp_path).splitlines()
    assert printed[0] == "| 8 bugs | first suspect | a model |"
    assert printed[2:5] == [
        "| function Acc@1 | 25.0% | 87.5% |",
        "| the same, first suspect wrong or tied (6) | 0.0% | 100.0% |",
        "| the same, first suspect right (2) | 100.0% | 50.0% |",
    ]
    assert "| turns | 2.0 | 2.0 |" in printed
    assert printed[-2:] == [
        "| a model, all | 8 | +62.5 | 6 | 1 | 0.12 |",
        "| a model, first suspect wrong or tied | 6 | +100.0 | 6 | 0 | 0.031 |",
    ]


def test_what_a_solver_made_of_the_packs_is_a_table_of_its_own(tmp_path: Path) -> None:
    rows = [solved_row("suspect", f"a{n}", float(n < 6)) for n in range(8)]
    rows += [solved_row("no_pack", f"a{n}", 0.0) for n in range(8)]
    write(tmp_path, [SUSPECT, {"name": "no_pack", "title": "no pack", "seeks": False}], rows)
    assert run_script("results_table", tmp_path).splitlines()[-2:] == [
        "| first suspect | 8 | 75.0% | 40.9 to 92.9 | 100.0% | 500.0 | 6 | 0 | 0.031 |",
        "| no pack | 8 | 0.0% | 0.0 to 32.4 | 100.0% | 500.0 |  | |  |",
    ]
    refused = run_script("results_table", tmp_path, "--against", "third", code=2)
    assert "no arm 'third', only suspect, no_pack" in refused


def test_stated_confidence_is_a_table_and_everything_is_in_the_picture(tmp_path: Path) -> None:
    point = {"low": 0.8, "high": 0.9, "confidence": 0.8, "right": 0.75, "count": 4}
    trained = {"name": "trained", "title": "a model", "calibration": [point], "calibration_error": 0.05}
    names = ("suspect", "trained")
    rows = [row(arm, f"{rank}{n}", rank, float(n > 1)) for arm in names for rank in ("first", "tied") for n in range(4)]
    rows += [solved_row(arm, f"c{n}", float(n)) for arm in names for n in range(2)]
    write(tmp_path, [{**SUSPECT, "calibration": []}, trained], rows)
    assert "| 0.8 to 0.9 | 4 | 0.80 | 75% |" in run_script("results_table", tmp_path)
    picture = tmp_path / "picture.svg"
    argv = [tmp_path, "--solver", tmp_path, "--out", picture, "--scaling", f"20={tmp_path}", f"79={tmp_path}"]
    run_script("results_picture", *argv)
    drawn = ElementTree.parse(picture).getroot()
    assert drawn.tag.endswith("svg")
    assert len([one for one in drawn.iter() if one.get("id", "").startswith("axes_")]) == 5

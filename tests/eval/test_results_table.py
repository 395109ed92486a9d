"""The script that makes the tables of docs/results.md from an evaluation."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

ROOT = Path(__file__).parents[2]


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


def run_script(name: str, *arguments: Path | str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", f"benchmarks.results.{name}", *map(str, arguments)]
    return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)


def printed_tables(*arguments: Path | str) -> list[str]:
    done = run_script("results_table", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


SUSPECT = {"name": "suspect", "title": "first suspect"}


def test_the_tables_count_hard_bugs_apart_and_compare_bug_by_bug(tmp_path: Path) -> None:
    rows = [row("suspect", f"a{n}", "first", 1.0) for n in range(2)]
    rows += [row("suspect", f"b{n}", "tied", 0.0) for n in range(6)]
    rows += [row("model", "a0", "first", 1.0), row("model", "a1", "first", 0.0)]
    rows += [row("model", f"b{n}", "tied", 1.0) for n in range(6)]
    rows += [row("suspect", "unfinished", "tied", 0.0)]
    write(tmp_path, [SUSPECT, {"name": "model", "title": "a model"}], rows)
    printed = printed_tables(tmp_path)
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


def test_what_a_solver_made_of_the_packs_is_a_table_of_its_own(
    tmp_path: Path,
) -> None:
    rows = [solved_row("suspect", f"a{n}", float(n < 6)) for n in range(8)]
    rows += [solved_row("no_pack", f"a{n}", 0.0) for n in range(8)]
    write(tmp_path, [SUSPECT, {"name": "no_pack", "title": "no pack", "seeks": False}], rows)
    assert printed_tables(tmp_path)[-2:] == [
        "| first suspect | 8 | 75.0% | 40.9 to 92.9 | 100.0% | 500.0 | 6 | 0 | 0.031 |",
        "| no pack | 8 | 0.0% | 0.0 to 32.4 | 100.0% | 500.0 |  | |  |",
    ]
    refused = run_script("results_table", tmp_path, "--against", "third")
    assert refused.returncode == 2
    assert "no arm 'third', only suspect, no_pack" in refused.stderr


def test_stated_confidence_is_a_table_and_everything_is_in_the_picture(tmp_path: Path) -> None:
    point = {"low": 0.8, "high": 0.9, "confidence": 0.8, "right": 0.75, "count": 4}
    trained = {"name": "trained", "title": "a model", "calibration": [point], "calibration_error": 0.05}
    names = ("suspect", "trained")
    rows = [row(arm, f"{rank}{n}", rank, float(n > 1)) for arm in names for rank in ("first", "tied") for n in range(4)]
    rows += [solved_row(arm, f"c{n}", float(n)) for arm in names for n in range(2)]
    write(tmp_path, [{**SUSPECT, "calibration": []}, trained], rows)
    assert "| 0.8 to 0.9 | 4 | 0.80 | 75% |" in printed_tables(tmp_path)
    picture = tmp_path / "picture.svg"
    argv = [tmp_path, "--solver", tmp_path, "--out", picture, "--scaling", f"20={tmp_path}", f"79={tmp_path}"]
    assert run_script("results_picture", *argv).returncode == 0
    drawn = ElementTree.parse(picture).getroot()
    assert drawn.tag.endswith("svg")
    assert len([one for one in drawn.iter() if one.get("id", "").startswith("axes_")]) == 5


def test_several_folders_are_one_table(tmp_path: Path) -> None:
    for folder, arms in (("a", ("suspect", "trained")), ("b", ("trained", "other"))):
        rows = [row(arm, f"t{n}", "tied", float(folder == "b")) for arm in arms for n in range(2)]
        write(tmp_path / folder, [{"name": arm, "title": f"{arm} of {folder}"} for arm in arms], rows)
    lines = printed_tables(tmp_path / "a", tmp_path / "b", "--against", "trained", "--measure", "file_acc@1")
    assert lines[0] == "| 2 bugs | suspect of a | trained of a | other of b |"
    assert lines[2] == "| function Acc@1 | 0.0% | 0.0% | 100.0% |"
    assert "| file Acc@1, compared with trained of a | bugs | points | better | worse | p |" in lines

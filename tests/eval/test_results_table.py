"""The script that makes the tables of docs/results.md from an evaluation."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parents[2]


def row(arm: str, task: str, suspect: str, right: float) -> str:
    scores = {"function_acc@1": right, "steps": 2.0, "seconds": 3.0}
    return json.dumps({"arm": arm, "task_id": task, "tags": {"suspect": suspect}, "scores": scores})


def solved_row(arm: str, task: str, fixed: float) -> str:
    scores = {"solved": fixed, "adherence": 1.0, "solver_tokens": 500.0}
    return json.dumps({"arm": arm, "task_id": task, "tags": {"suspect": "tied"}, "scores": scores})


def printed_tables(*arguments: Path | str) -> list[str]:
    argv = [sys.executable, "benchmarks/results_table.py", *map(str, arguments)]
    return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()


def test_the_tables_count_hard_bugs_apart_and_compare_bug_by_bug(tmp_path: Path) -> None:
    arms = [
        {"name": "suspect", "title": "first suspect", "seeks": True},
        {"name": "model", "title": "a model", "seeks": True},
    ]
    (tmp_path / "summary.json").write_text(json.dumps({"arms": arms}))
    rows = [row("suspect", f"a{n}", "first", 1.0) for n in range(2)] + [
        row("suspect", f"b{n}", "tied", 0.0) for n in range(6)
    ]
    rows += [row("model", "a0", "first", 1.0), row("model", "a1", "first", 0.0)]
    rows += [row("model", f"b{n}", "tied", 1.0) for n in range(6)]
    rows += [row("suspect", "unfinished", "tied", 0.0)]
    (tmp_path / "results.jsonl").write_text("\n".join(rows) + "\n")
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


def test_what_a_solver_made_of_the_packs_is_a_table_of_its_own(tmp_path: Path) -> None:
    arms = [
        {"name": "suspect", "title": "first suspect", "seeks": True},
        {"name": "no_pack", "title": "no pack", "seeks": False},
    ]
    (tmp_path / "summary.json").write_text(json.dumps({"arms": arms}))
    rows = [solved_row("suspect", f"a{n}", float(n < 6)) for n in range(8)]
    rows += [solved_row("no_pack", f"a{n}", 0.0) for n in range(8)]
    (tmp_path / "results.jsonl").write_text("\n".join(rows) + "\n")
    assert printed_tables(tmp_path)[-2:] == [
        "| first suspect | 8 | 75.0% | 40.9 to 92.9 | 100.0% | 500.0 | 6 | 0 | 0.031 |",
        "| no pack | 8 | 0.0% | 0.0 to 32.4 | 100.0% | 500.0 |  | |  |",
    ]


def test_stated_confidence_is_a_table_and_everything_is_in_the_picture(tmp_path: Path) -> None:
    point = {"low": 0.8, "high": 0.9, "confidence": 0.8, "right": 0.75, "count": 4}
    arms = [
        {"name": "suspect", "title": "first suspect", "seeks": True, "calibration": []},
        {"name": "trained", "title": "a model", "seeks": True, "calibration": [point], "calibration_error": 0.05},
    ]
    (tmp_path / "summary.json").write_text(json.dumps({"arms": arms}))
    rows = [
        row(arm, f"{rank}{n}", rank, float(n > 1))
        for arm in ("suspect", "trained")
        for rank in ("first", "tied")
        for n in range(4)
    ]
    rows += [solved_row(arm, f"c{n}", float(n)) for arm in ("suspect", "trained") for n in range(2)]
    (tmp_path / "results.jsonl").write_text("\n".join(rows) + "\n")
    assert "| 0.8 to 0.9 | 4 | 0.80 | 75% |" in printed_tables(tmp_path)
    picture = tmp_path / "picture.svg"
    argv = [
        sys.executable,
        "benchmarks/results_picture.py",
        str(tmp_path),
        "--solver",
        str(tmp_path),
        "--out",
        str(picture),
    ]
    subprocess.run([*argv, "--scaling", f"20={tmp_path}", f"79={tmp_path}"], cwd=ROOT, check=True)
    drawn = ElementTree.parse(picture).getroot()
    assert drawn.tag.endswith("svg")
    axes = [one for one in drawn.iter() if one.get("id", "").startswith("axes_")]
    assert len(axes) == 5


def test_several_folders_are_one_table(tmp_path: Path) -> None:
    for folder, arms in (("a", ("suspect", "trained")), ("b", ("trained", "other"))):
        summaries = [{"name": arm, "title": f"{arm} of {folder}", "seeks": True} for arm in arms]
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "summary.json").write_text(json.dumps({"arms": summaries}))
        rows = [row(arm, f"t{n}", "tied", float(folder == "b")) for arm in arms for n in range(2)]
        (tmp_path / folder / "results.jsonl").write_text("\n".join(rows) + "\n")
    lines = printed_tables(tmp_path / "a", tmp_path / "b")
    assert lines[0] == "| 2 bugs | suspect of a | trained of a | other of b |"
    assert lines[2] == "| function Acc@1 | 0.0% | 0.0% | 100.0% |"


def test_any_arm_can_be_what_the_others_are_compared_with(tmp_path: Path) -> None:
    names = ("first", "second", "no_pack")
    arms = [{"name": name, "title": f"arm {name}", "seeks": name != "no_pack"} for name in names]
    (tmp_path / "summary.json").write_text(json.dumps({"arms": arms}))
    rows = [
        {
            "arm": name,
            "task_id": f"t{n}",
            "tags": {},
            "scores": {"reported": float(n < reports), "solved": float(n < 1)},
        }
        for name, reports in zip(names, (2, 8, 0), strict=True)
        for n in range(8)
    ]
    (tmp_path / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    printed = printed_tables(tmp_path, "--against", "first", "--measure", "reported")
    assert "| reported, compared with arm first | bugs | points | better | worse | p |" in printed
    assert "| arm second, all | 8 | +75.0 | 6 | 0 | 0.031 |" in printed
    assert [line.rsplit("|", 4)[1:] for line in printed[-3:]] == [
        ["  ", " ", "  ", ""],
        [" 0 ", " 0 ", " 1 ", ""],
        [" 0 ", " 0 ", " 1 ", ""],
    ]
    refused = subprocess.run(
        [sys.executable, "benchmarks/results_table.py", str(tmp_path), "--against", "third"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert refused.returncode == 2
    assert "no arm 'third', only first, second, no_pack" in refused.stderr

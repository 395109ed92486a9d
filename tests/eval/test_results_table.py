"""The script that makes the tables of docs/results.md from an evaluation."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parents[2]


def row(arm: str, task: str, suspect: str, right: float, solver: str | None = None) -> str:
    scores = {"function_acc@1": right, "steps": 2.0}
    return json.dumps({"arm": arm, "task_id": task, "solver": solver, "tags": {"suspect": suspect}, "scores": scores})


def test_the_tables_count_hard_bugs_apart_and_compare_bug_by_bug(tmp_path: Path) -> None:
    arms = [{"name": "suspect", "title": "first suspect"}, {"name": "model", "title": "a model"}]
    (tmp_path / "summary.json").write_text(json.dumps({"arms": arms}))
    rows = [row("suspect", f"a{n}", "first", 1.0) for n in range(2)] + [
        row("suspect", f"b{n}", "tied", 0.0) for n in range(6)
    ]
    rows += [row("model", "a0", "first", 1.0), row("model", "a1", "first", 0.0)]
    rows += [row("model", f"b{n}", "tied", 1.0) for n in range(6)]
    rows += [row("suspect", "unfinished", "tied", 0.0), row("model", "a0", "first", 0.0, solver="s")]
    (tmp_path / "results.jsonl").write_text("\n".join(rows) + "\n")
    picture = tmp_path / "picture.svg"
    argv = [sys.executable, "benchmarks/results_table.py", str(tmp_path), "--out", str(picture)]
    printed = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
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
    assert ElementTree.parse(picture).getroot().tag.endswith("svg")

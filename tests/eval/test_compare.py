"""`gumshoe compare`: paired differences between evaluations on disk."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gumshoe.cli import main
from gumshoe.eval.records import Result
from gumshoe.records import StopReason


def write_run(folder: Path, arms: dict[str, list[float | None]], first: int = 0) -> Path:
    folder.mkdir()
    rows = [
        Result(
            arm=arm,
            task_id=f"t{number}",
            sample=0,
            split="all",
            trajectory="x",
            stop=StopReason.REPORTED,
            scores={"line_recall": value, "mine": value},
        )
        for arm, values in arms.items()
        for number, value in enumerate(values, start=first)
    ]
    (folder / "results.jsonl").write_text("".join(f"{row.model_dump_json()}\n" for row in rows))
    return folder


def test_arms_of_the_same_name_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = write_run(tmp_path / "a", {"x": [0.0, 0.0, 1.0], "y": [0.5]})
    after = write_run(tmp_path / "b", {"x": [1.0, 1.0, 1.0, 0.0], "z": [0.5]})
    assert main(["compare", str(before), str(after), "--json"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    made = json.loads(line)
    assert (made["arm"], made["better"], made["worse"], made["mcnemar_p"]) == ("x", 2, 0, 0.5)
    assert made["difference"]["value"] == pytest.approx(2 / 3)
    assert main(["compare", str(before), str(after), "--metric", "line_recall"]) == 0
    assert "+0.667" in capsys.readouterr().out
    assert main(["compare", str(before), str(after), "--metric", "mine", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["metric"] == "mine"


def test_one_arm_of_each_is_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_run(tmp_path / "a", {"x": [0.0, 0.25], "y": [0.5, 0.5]})
    assert main(["compare", f"{run}:x", f"{run}:y", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert (made["baseline"], made["arm"], made["difference"]["value"]) == ("x", "y", 0.375)
    assert main(["compare", f"{run}:x", f"{run}:y"]) == 0
    shown = capsys.readouterr().out
    assert "y against x, " in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_wrong_input_ends_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_run(tmp_path / "a", {"x": [0.0], "y": [0.0]})
    other = write_run(tmp_path / "b", {"z": [0.0], "w": [1.0]})
    later = write_run(tmp_path / "c", {"x": [0.0]}, first=9)
    broken = tmp_path / "d"
    broken.mkdir()
    (broken / "results.jsonl").write_text("{}\n")
    for argv, said in (
        ([str(tmp_path / "none"), str(run)], "is not an evaluation: it has no results.jsonl"),
        ([str(broken), str(run)], "results.jsonl line 1: arm: Field required"),
        ([f"{run}:q", str(run)], "has no arm 'q': it has x, y"),
        ([str(run), str(other)], "have no arm in common"),
        ([str(run), str(run), "--metric", "m"], "no metric 'm': there are solved, "),
        ([str(run), str(run), "--seed", "-1"], "--seed -1: give 0 or more"),
        ([f"{run}:x", f"{later}:x"], "have no task in common"),
    ):
        assert main(["compare", *argv]) == 2
        error = capsys.readouterr().err
        assert said in error
        assert error.count("\n") == 1

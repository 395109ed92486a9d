"""From results to the summary, what the terminal says of it, and how two evaluations on disk differ."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gumshoe.cli import main
from gumshoe.collect.config import OpenAIConfig, TasksConfig, TracebackConfig
from gumshoe.collect.run.control import Control
from gumshoe.console import Console
from gumshoe.errors import DatasetError
from gumshoe.eval.arms.arm import CollectedPacks, EvalRun, Solution
from gumshoe.eval.arms.build import make_arms
from gumshoe.eval.config import ArmConfig, EvalConfig, ReferenceName, SolverConfig
from gumshoe.eval.evaluate import read_losses
from gumshoe.eval.records import ALL, FlakyTask, LossCurve, Result, Summary
from gumshoe.eval.results import make_results, summarize, timing
from gumshoe.eval.score.tables import print_table
from gumshoe.records import Decision, Score, StopReason
from support.eval.made import PATCH, make_oracle, make_pack, make_step, make_task, make_trajectory

Capture = pytest.CaptureFixture[str]
REFERENCES: tuple[ReferenceName, ...] = ("no_pack", "debug", "rewrite")


def evaluated(
    folder: Path, references: tuple[ReferenceName, ...] = REFERENCES
) -> tuple[EvalConfig, Summary, Mapping[str, list[Result]]]:
    """Three tasks; the seeker `good` names the place, `bad` does not, and the solver fixes what it is shown."""
    tasks = [make_task(f"t{number}") for number in range(3)]
    solver = SolverConfig(kind="policy", policy=OpenAIConfig(model="big", base_url="http://x"), references=references)
    config = EvalConfig(
        out=str(folder),
        tasks=TasksConfig(source="casebook"),
        arms=tuple(ArmConfig(name=name, policy=TracebackConfig()) for name in ("bad", "good")),
        solver=solver,
        resamples=100,
    )
    arms = make_arms(config)
    packs: dict[str, CollectedPacks] = {
        name: CollectedPacks({(task.id, 0): None for task in tasks}) for name in references
    }
    solutions: dict[tuple[str, str, int], Solution] = {}
    for name, line in (("bad", 1), ("good", 8)):
        steps = [make_step(0, "tax = 1"), make_step(1, "", tool="report", confidence=0.8, decision=Decision.REPORT)]
        pack = make_pack(("cart.py", line, line), findings=[(0, "tax = 1")])
        episodes = {
            (task.id, 0): make_trajectory(steps, pack, task=task, name=f"{name}-{task.id}", tokens=100).model_copy(
                update={"scores": (Score(name="resolved", value=1.0),)}
            )
            for task in tasks
        }
        packs[name] = CollectedPacks(dict.fromkeys(episodes, pack), episodes)
    for name in ("bad", "good", *references):
        for task in tasks:
            patch, by = PATCH if name == "good" else "", f"solver-{name}-{task.id}"
            spent: dict[str, Any] = {"steps": 4, "tokens": 1000, "cost_usd": 0.25, "seconds": 2.0}
            solutions[name, task.id, 0] = Solution(float(bool(patch)), patch, by, **spent)
    control = Control()
    control.abort()  # the files of these tasks are in no image that could be read
    run = EvalRun(config, tuple((task, make_oracle(task.id)) for task in tasks), control, packs=packs)
    results = make_results(arms, solutions, run)
    flaky = (FlakyTask(task_id="t9", passed=2, runs=3),)
    return config, summarize(run, flaky, arms, results), results


def test_the_summary_and_the_results_of_three_tasks(tmp_path: Path) -> None:
    config, summary, results = evaluated(tmp_path)
    uplift = {one.arm: one for one in summary.comparisons if (one.metric, one.group) == ("solved", ALL)}
    assert summary.baseline == uplift["good"].baseline == "no_pack"
    assert (uplift["good"].difference.value, uplift["good"].better, uplift["good"].worse) == (1.0, 3, 0)
    assert {arm.name: arm.calibration_error for arm in summary.arms if arm.seeks} == {
        "bad": pytest.approx(0.8),
        "good": pytest.approx(0.2),
    }
    assert [(one.task_id, one.passed, one.runs) for one in summary.flaky] == [("t9", 2, 3)]
    assert summary.solver == "big, agent"
    assert ("debug", "rewrite") in {(one.arm, one.baseline) for one in summary.comparisons}
    assert [(arm.name, arm.title) for arm in summary.arms if not arm.seeks] == [
        ("no_pack", "solver alone"),
        ("debug", "agent with debugger"),
        ("rewrite", "agent without debugger"),
    ]
    good, alone = results["good"][0], results["no_pack"][0]
    assert (good.trajectory, good.solver, good.patch) == ("good-t0", "solver-good-t0", PATCH)
    assert (good.scores["resolved"], good.scores["line_recall"], good.tags["project"]) == (1.0, 0.5, "cart")
    assert (alone.trajectory, alone.solver, alone.stop, alone.patch) == ("", "solver-no_pack-t0", None, "")
    seconds = timing(config, results)
    assert seconds["good"][ALL]["solver_seconds"]["value"] == 2.0
    assert seconds["good"][ALL]["total_seconds"]["value"] == 4.0
    assert seconds["no_pack"][ALL]["solver_seconds"]["value"] is None
    assert "seconds" not in summary.model_dump_json()
    out = io.StringIO()
    print_table(summary, Console(file=out, width=200))
    text = out.getvalue()
    for shown in ("held-out bugs: 3 tasks,", "fixed, held-out bugs: 3 tasks,", "1,000", "+100", "3 better, 0 worse"):
        assert shown in text
    assert text.count("good") == 2
    narrow = io.StringIO()
    print_table(summary, Console(file=narrow, width=80))
    rule = "\N{BOX DRAWINGS LIGHT HORIZONTAL}"
    assert set(text.replace(rule, "").split()) == set(narrow.getvalue().replace(rule, "").split()), "a word is broken"
    _, alone, _ = evaluated(tmp_path, references=())
    assert {(one.arm, one.baseline) for one in alone.comparisons if one.metric == "solved"} == {("good", "bad")}
    assert alone.baseline == "bad"


def test_losses_are_read_by_step_and_odd_rows_left_out(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text('{"step": 2, "loss": 1.5}\n{"step": 1, "loss": 2}\n{"step": 3, "loss": NaN}\n{"loss": 1}\n\n')
    assert read_losses(str(log)) == (LossCurve(label="training", points=((1.0, 2.0), (2.0, 1.5))),)
    with log.open("a") as file:
        file.write('{"step": 2, "eval_loss": 2.5}\n')
    assert [curve.label for curve in read_losses(str(log))] == ["training", "held out"]
    log.write_text("{")
    with pytest.raises(DatasetError, match="line 1: not JSON"):
        read_losses(str(log))
    with pytest.raises(DatasetError, match="there is no training log"):
        read_losses(str(tmp_path / "nowhere"))


def write_run(folder: Path, arms: dict[str, list[float]], first: int = 0) -> Path:
    """An evaluation as far as `compare` reads it."""
    folder.mkdir()
    ended: dict[str, Any] = {"sample": 0, "split": "all", "trajectory": "x", "stop": StopReason.REPORTED}
    rows = [
        Result(arm=arm, task_id=f"t{number}", scores={"line_recall": value, "mine": value}, **ended)
        for arm, values in arms.items()
        for number, value in enumerate(values, start=first)
    ]
    (folder / "results.jsonl").write_text("".join(f"{row.model_dump_json()}\n" for row in rows))
    return folder


def test_arms_of_the_same_name_or_one_of_each_are_compared(tmp_path: Path, capsys: Capture) -> None:
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
    assert main(["compare", f"{after}:x", f"{after}:z", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert (made["baseline"], made["arm"], made["difference"]["value"]) == ("x", "z", -0.5)
    assert main(["compare", f"{after}:x", f"{after}:z"]) == 0
    shown = capsys.readouterr().out
    assert "z against x, " in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_wrong_input_ends_in_one_line(tmp_path: Path, capsys: Capture) -> None:
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
        ([str(run), str(run), "--metric", "m"], "unknown metric 'm'; known: solved, "),
        ([str(run), str(run), "--seed", "-1"], "--seed -1: give 0 or more"),
        ([f"{run}:x", f"{later}:x"], "have no task in common"),
    ):
        assert main(["compare", *argv]) == 2
        error = capsys.readouterr().err
        assert said in error
        assert error.count("\n") == 1

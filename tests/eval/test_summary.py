"""From results to the summary: the arms of a solver, uplift, costs, training losses, what the terminal says of them."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path

import pytest

from gumshoe.collect.config import OpenAIConfig, TasksConfig, TracebackConfig
from gumshoe.collect.run.control import Control
from gumshoe.console import Console
from gumshoe.errors import DatasetError
from gumshoe.eval.arms.arm import CollectedPacks, EvalRun, Solution
from gumshoe.eval.arms.build import make_arms
from gumshoe.eval.config import ArmConfig, EvalConfig, ReferenceName, SolverConfig
from gumshoe.eval.evaluate import read_losses
from gumshoe.eval.records import ALL, ArmSummary, FlakyTask, LossCurve, Result, Summary
from gumshoe.eval.results import make_results, score_trajectory, summarize, timing
from gumshoe.eval.score.buggy_code import BuggyCode
from gumshoe.eval.score.measures import Bootstrap, measures
from gumshoe.eval.score.metrics import adherence
from gumshoe.eval.score.tables import print_table
from gumshoe.records import ContextPack, Decision, PolicyInfo
from support.eval.made import PATCH, make_oracle, make_pack, make_step, make_task, make_trajectory

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
            (task.id, 0): make_trajectory(steps, pack, task=task, name=f"{name}-{task.id}", tokens=100)
            for task in tasks
        }
        packs[name] = CollectedPacks(dict.fromkeys(episodes, pack), episodes)
    for name in ("bad", "good", *references):
        for task in tasks:
            solved = float(name == "good")
            solutions[name, task.id, 0] = Solution(
                solved,
                PATCH if solved else "",
                f"solver-{name}-{task.id}",
                steps=4,
                tokens=1000,
                cost_usd=0.25,
                seconds=2.0,
            )
    control = Control()
    control.abort()  # the files of these tasks are in no image that could be read
    run = EvalRun(config, tuple((task, make_oracle(task.id)) for task in tasks), control, packs=packs)
    results = make_results(arms, solutions, run)
    flaky = (FlakyTask(task_id="t9", passed=2, runs=3),)
    return config, summarize(run, flaky, arms, results), results


def test_the_summary_holds_uplift_calibration_and_flaky_tasks(tmp_path: Path) -> None:
    _, summary, _ = evaluated(tmp_path)
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


def test_a_result_holds_the_patch_and_both_episodes(tmp_path: Path) -> None:
    _, _, results = evaluated(tmp_path)
    good, alone = results["good"][0], results["no_pack"][0]
    assert (good.trajectory, good.solver, good.patch) == ("good-t0", "solver-good-t0", PATCH)
    assert (alone.trajectory, alone.solver, alone.stop, alone.patch) == ("", "solver-no_pack-t0", None, "")


@pytest.mark.parametrize(
    ("pack", "patch", "expected"),
    [
        (make_pack(("cart.py", 1, 2), ("cart.py", 8, 9)), PATCH, 1.0),
        (make_pack(("cart.py", 1, 2)), PATCH, 0.0),
        (make_pack(("other.py", 1, 99)), PATCH, 0.0),
        (make_pack(("cart.py", 8, 8)), "", None),
        (make_pack(("cart.py", 8, 8)), "no patch", None),
        (make_pack(), PATCH, None),
        (None, PATCH, None),
    ],
)
def test_adherence_needs_a_patch_and_a_place(pack: ContextPack | None, patch: str, expected: float | None) -> None:
    assert adherence(pack, patch) == expected


def test_without_arms_of_its_own_the_solver_is_compared_with_the_baseline(tmp_path: Path) -> None:
    _, summary, _ = evaluated(tmp_path, references=())
    assert {(one.arm, one.baseline) for one in summary.comparisons if one.metric == "solved"} == {("good", "bad")}
    assert summary.baseline == "bad"


def test_seconds_stand_apart_from_the_summary(tmp_path: Path) -> None:
    config, summary, results = evaluated(tmp_path)
    seconds = timing(config, results)
    assert seconds["good"][ALL]["solver_seconds"]["value"] == 2.0
    assert seconds["good"][ALL]["total_seconds"]["value"] == 4.0
    assert seconds["no_pack"][ALL]["solver_seconds"]["value"] is None
    assert "seconds" not in summary.model_dump_json()


def two_arms() -> Summary:
    """Arm b finds half of the fix; two tasks of different splits."""
    tasks = [make_task("t1"), make_task("t2", split="heldout_projects")]
    pack = make_pack(("cart.py", 8, 8), ("other.py", 1, 2), findings=[(0, "x = 3"), (1, "unseen")])
    steps = [make_step(0, "x = 3", confidence=0.5), make_step(1, "broken", parse_error="x"), make_step(2, "", calls=0)]
    code = BuggyCode(tasks)
    results = {
        "a": [make_trajectory([make_step(0, "x")], task=task, name=f"a{task.id}") for task in tasks],
        "b": [make_trajectory(steps, pack, task=task, name=f"b{task.id}", tokens=1200) for task in tasks],
    }
    scored = {
        name: [score_trajectory(name, one, make_oracle(one.task.id), code) for one in of_arm]
        for name, of_arm in results.items()
    }
    return Summary(
        title="A title",
        config_hash="f" * 64,
        seed=0,
        tasks={ALL: 2, "heldout_bugs": 1, "heldout_projects": 1},
        arms=tuple(
            ArmSummary(
                name=name,
                title=f"arm {name}",
                policy=PolicyInfo(kind="made"),
                episodes=2,
                groups=measures(of_arm, Bootstrap(0, 100)),
            )
            for name, of_arm in scored.items()
        ),
    )


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
    log.write_text("{}\n[]\n")
    with pytest.raises(DatasetError, match="line 2 is not a JSON object"):
        read_losses(str(log))
    with pytest.raises(DatasetError, match="there is no training log"):
        read_losses(str(tmp_path / "nowhere"))


def test_the_terminal_table_has_a_line_an_arm_and_group() -> None:
    out = io.StringIO()
    print_table(two_arms(), Console(file=out, width=160))
    text = out.getvalue()
    assert "held-out bugs: 1 task," in text
    assert text.count("arm a") == 2
    assert "1,200" in text

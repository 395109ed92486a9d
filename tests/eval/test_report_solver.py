"""The page of an evaluation with a solver: arms, costs, calibration, and every task's diffs and verdicts."""

from __future__ import annotations

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made import PATCH, make_oracle, make_pack, make_step, make_task, make_trajectory
from rich.console import Console
from test_report import HOSTILE, read

from gumshoe.collect.config import OpenAIConfig, TasksConfig, TracebackConfig
from gumshoe.collect.runner import RunResult
from gumshoe.eval.arms import PlayedArm
from gumshoe.eval.config import ArmConfig, EvalConfig, SolverConfig
from gumshoe.eval.report import print_table
from gumshoe.eval.report.html import render
from gumshoe.eval.report.metrics import Metric, write_cell
from gumshoe.eval.report.page import build_page
from gumshoe.eval.report.plots import calibration_plot, cost_plot
from gumshoe.eval.results import ALL, ArmSummary, CalibrationBin, FlakyTask, Measured, Summary, score_trajectory
from gumshoe.eval.run import Evaluation
from gumshoe.eval.scorers import make_scorers
from gumshoe.eval.solve import Repaired, with_outcomes
from gumshoe.eval.solver.jobs import Solved
from gumshoe.eval.summarise import summarise, timing
from gumshoe.records import Decision, PolicyInfo

REFERENCES = ("no_pack", "debug", "rewrite")


def evaluated(text: str = "tax = 1", *, references: bool = True) -> Evaluation:
    """Three tasks; the seeker `good` names the place, `bad` does not, and the solver repairs what it is shown."""
    tasks = [make_task(f"t{number}") for number in range(3)]
    solver = SolverConfig(kind="policy", policy=OpenAIConfig(model="big", base_url="http://x"), references=REFERENCES)
    config = EvalConfig(
        out="x",
        tasks=TasksConfig(source="casebook"),
        arms=tuple(ArmConfig(name=name, policy=TracebackConfig()) for name in ("bad", "good")),
        solver=solver,
        trace_arm="good",
        resamples=100,
    )
    played: list[PlayedArm] = []
    outcomes: dict[tuple[str, str, int], Solved] = {}
    episodes = {}
    for arm, line in zip(config.arms, (1, 8), strict=True):
        found = []
        for task in tasks:
            steps = [make_step(0, text), make_step(1, "", tool="report", confidence=0.8, decision=Decision.REPORT)]
            pack = make_pack(("cart.py", line, line), findings=[(0, text)])
            found.append((0, make_trajectory(steps, pack, task=task, name=f"{arm.name}-{task.id}", tokens=100)))
        played.append(PlayedArm(arm, RunResult(3, 3, 3, 0, None), tuple(found)))
    for name in ("bad", "good", *REFERENCES):
        for task in tasks:
            solved = float(name == "good")
            one = make_trajectory([make_step(0, text)], task=task, name=f"solver-{name}-{task.id}", tokens=1000)
            episodes[name, task.id, 0] = one
            outcomes[name, task.id, 0] = Solved(
                solved, PATCH if solved else "", one.id, steps=4, tokens=1000, cost_usd=0.25, seconds=2.0
            )
    pairs = tuple((task, make_oracle(task.id).model_copy(update={"fail_to_pass": ("test_a",) * 25})) for task in tasks)
    scorers = make_scorers(tasks)
    by_arm = {
        one.arm.name: [score_trajectory(one.arm.name, each, make_oracle(), scorers) for _, each in one.trajectories]
        for one in played
    }
    repaired = Repaired(outcomes, REFERENCES if references else (), episodes)
    known = with_outcomes(by_arm, pairs, repaired, 1)
    flaky = (FlakyTask(task_id="t9", passed=2, runs=3),)
    own = {f"{one.arm.name}/{each.id}": each for one in played for _, each in one.trajectories}
    return Evaluation(
        config=config,
        summary=summarise(config, pairs, flaky, played, known),
        results=tuple(result for of_arm in known.values() for result in of_arm),
        tasks=pairs,
        trajectories=own | {f"solver/{arm}/{one.id}": one for (arm, _, _), one in episodes.items()},
    )


@pytest.fixture(scope="module")
def page() -> str:
    return render(build_page(evaluated(), None))


def text_of(page: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))


def test_the_page_shows_uplift_cost_calibration_and_flaky_tasks(page: str) -> None:
    text = text_of(page)
    assert "Uplift, points +100" in text
    assert "3 better, 0 worse" in text
    assert "What it costs, and what it repairs" in text
    assert "dollars a task, seeker and solver" in text
    assert "Expected error: bad 0.80, good 0.20" in text
    assert "t9 (2 of 3 runs)" in text
    assert "big, agent" in text
    assert "Repaired: with the debugger, and without" in text


def test_a_row_opens_seeker_solver_diff_tests_and_verdict(page: str) -> None:
    text = text_of(page)
    assert text.count("What was changed") == 3
    assert text.count("Nothing was changed.") == 12
    assert text.count("The solver ") >= 15
    assert "tests: repaired" in text
    assert "and 5 more" in text
    elements = read(page)
    assert {link.removeprefix("#") for link in elements.links} <= set(elements.ids)
    assert len(elements.ids) == len(set(elements.ids))


def test_hostile_text_stays_text_in_the_solvers_traces() -> None:
    hostile = read(render(build_page(evaluated(HOSTILE), None)))
    assert hostile.names == read(render(build_page(evaluated(), None))).names


def test_traces_that_do_not_fit_are_counted_with_the_solvers() -> None:
    page = build_page(evaluated(), None, most_traces=7)
    assert page.traces_left_out == 21 - 7
    assert [row.arms[0].solver is None for row in page.tasks] == [False, True, True]


def test_without_arms_of_its_own_the_solver_is_compared_with_the_baseline() -> None:
    summary = evaluated(references=False).summary
    assert {(one.arm, one.baseline) for one in summary.comparisons if one.metric == "solved"} == {("good", "bad")}
    assert "Repaired: difference" in text_of(render(build_page(evaluated(references=False), None)))


def test_the_terminal_says_what_was_repaired_and_what_it_has_cost() -> None:
    out = io.StringIO()
    print_table(evaluated().summary, Console(file=out, width=200))
    text = out.getvalue()
    assert "repaired, held-out bugs: 3 tasks" in text
    assert "Solver tokens" in text
    assert "+100" in text


def test_seconds_stand_apart_from_the_summary() -> None:
    made = evaluated()
    rows = {name: [one for one in made.results if one.arm == name] for name in ("good", "no_pack")}
    seconds = timing(made.config, rows)
    assert seconds["good"][ALL]["solver_seconds"]["value"] == 2.0
    assert seconds["good"][ALL]["total_seconds"]["value"] == 4.0
    assert seconds["no_pack"][ALL]["solver_seconds"]["value"] is None
    assert "seconds" not in made.summary.model_dump_json()


# --- the pictures -------------------------------------------------------------------------------------------------


def arm(name: str, share: float, spent: float | None, curve: tuple[CalibrationBin, ...] = ()) -> ArmSummary:
    def one(value: float | None) -> Measured:
        return Measured(value=value, low=value, high=value, count=0 if value is None else 1)

    groups = {ALL: {"solved": one(share), "tokens": one(spent)}}
    return ArmSummary(
        name=name, title=name, policy=PolicyInfo(kind="made"), episodes=1, groups=groups, calibration=curve
    )


def summary_of(*arms: ArmSummary) -> Summary:
    return Summary(title="t", config_hash="f", seed=0, tasks={ALL: 1}, arms=arms)


@given(arms=st.lists(st.tuples(st.floats(0, 1), st.floats(1, 1e6)), min_size=2, max_size=6))
def test_costs_stay_inside_their_picture(arms: list[tuple[float, float]]) -> None:
    chart = cost_plot(summary_of(*(arm(str(number), *one) for number, one in enumerate(arms))))
    assert chart is not None
    for curve in chart.curves:
        (point,) = curve.points
        assert chart.left <= point.x <= chart.right
        assert chart.top <= point.high <= point.y <= point.low <= chart.bottom


def test_a_picture_of_costs_takes_two_arms_that_have_any() -> None:
    assert cost_plot(summary_of(arm("a", 0.5, 10.0), arm("b", 0.5, None))) is None
    assert calibration_plot(summary_of(arm("a", 0.5, 10.0))) is None


@given(points=st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.integers(1, 50)), min_size=1, max_size=10))
def test_calibration_stays_inside_its_picture(points: list[tuple[float, float, int]]) -> None:
    curve = tuple(
        CalibrationBin(low=0, high=1, confidence=confidence, right=right, count=count)
        for confidence, right, count in points
    )
    chart = calibration_plot(summary_of(arm("a", 0.5, None, curve)))
    assert chart is not None
    assert chart.diagonal
    assert len(chart.curves[0].points) == len(points)
    for point in chart.curves[0].points:
        assert chart.left <= point.x <= chart.right
        assert chart.top <= point.y <= chart.bottom


@pytest.mark.parametrize(
    ("value", "high", "said"),
    [
        (1234.5, 2000.0, ("1,234", "0 to 2,000")),
        (12.34, 20.0, ("12.3", "0.0 to 20.0")),
        (0.0123, None, ("0.0123", "0.0000 to no bound")),
    ],
)
def test_amounts_are_written_with_as_many_digits_as_they_need(
    value: float, high: float | None, said: tuple[str, str]
) -> None:
    cell = write_cell(Measured(value=value, low=0.0, high=high, count=1), Metric("x", "X", "", share=False))
    assert (cell.value, cell.interval) == said

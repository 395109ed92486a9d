"""The page and the table: what they say, that they load nothing, and that hostile text stays text."""

from __future__ import annotations

import dataclasses
import html
import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made import make_oracle, make_pack, make_step, make_task, make_trajectory
from rich.console import Console

from gumshoe.collect.config import TasksConfig, TracebackConfig
from gumshoe.errors import DatasetError
from gumshoe.eval.config import ArmConfig, EvalConfig
from gumshoe.eval.report import loss_curve, print_table, write_report
from gumshoe.eval.report.charts import dot_chart, line_chart, nice_ticks
from gumshoe.eval.report.html import render
from gumshoe.eval.report.page import build_page
from gumshoe.eval.report.traces import OBSERVATION_CHARS, mark_quotes, show_trace, trace_map
from gumshoe.eval.report.training_log import read_losses
from gumshoe.eval.results import ALL, ArmSummary, Measured, Summary, compare_all, measures, score_trajectory
from gumshoe.eval.run import Evaluation
from gumshoe.eval.scorers import make_scorers
from gumshoe.records import DebugFrame, PolicyInfo, RuledOut, Task, Trajectory

HOSTILE = "</pre></style><script>alert(1)</script><img src=x onerror=alert(1)>'\"&{{ 7 * 7 }}"


def evaluation(episodes: dict[str, dict[str, Trajectory]], tasks: list[Task], **config: Any) -> Evaluation:
    """An evaluation of arms "a", "b", ... as `gumshoe eval` makes it, without the playing."""
    scorers = make_scorers(tasks)
    results = {
        arm: [score_trajectory(arm, one, make_oracle(task), scorers) for task, one in of_arm.items()]
        for arm, of_arm in episodes.items()
    }
    counts = {ALL: len(tasks)}
    for task in tasks:
        if "split" in task.tags:
            counts[task.tags["split"]] = counts.get(task.tags["split"], 0) + 1
    return Evaluation(
        config=EvalConfig(
            out="x",
            tasks=TasksConfig(source="casebook"),
            arms=tuple(ArmConfig(name=arm, policy=TracebackConfig()) for arm in episodes),
            **config,
        ),
        summary=Summary(
            title=config.get("title", "A title"),
            config_hash="f" * 64,
            seed=0,
            tasks=counts,
            arms=tuple(
                ArmSummary(
                    name=arm,
                    title=config.get("title", f"arm {arm}"),
                    policy=PolicyInfo(kind="made"),
                    model="m" if arm == "b" else None,
                    episodes=len(of_arm),
                    groups=measures(of_arm, seed=0, resamples=100),
                )
                for arm, of_arm in results.items()
            ),
            comparisons=compare_all(results, next(iter(results)), seed=0, resamples=100),
        ),
        results=tuple(result for of_arm in results.values() for result in of_arm),
        tasks=tuple((task, make_oracle(task.id)) for task in tasks),
        trajectories={f"{arm}/{one.id}": one for arm, of_arm in episodes.items() for one in of_arm.values()},
    )


def two_arms(text: str = "x = 3", **more: Any) -> Evaluation:
    tasks = [make_task("t1"), make_task("t2", split="heldout_projects")]
    steps = [
        make_step(0, text, confidence=0.5, rationale=text, arguments={"path": text}),
        make_step(1, "broken", parse_error=text),
        make_step(2, "", calls=0, decision=None),
    ]
    pack = make_pack(("cart.py", 8, 8), ("other.py", 1, 2), findings=[(0, text), (1, "unseen"), (7, "nowhere")])
    pack = pack.model_copy(
        update={
            "hypothesis": text,
            "ruled_out": (RuledOut(what=text, why=text),),
            "failing_frame": DebugFrame(path="cart.py", line=8, function=text),
        }
    )
    episodes = {
        "a": {task.id: make_trajectory([make_step(0, text)], task=task, name=f"a{task.id}") for task in tasks},
        "b": {task.id: make_trajectory(steps, pack, task=task, name=f"b{task.id}", tokens=1200) for task in tasks},
    }
    return evaluation(episodes, tasks, **more)


class Elements(HTMLParser):
    """Collects the elements of a page, and the ids and inner links."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.ids: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        for name, value in attrs:
            self.attributes.add(name)
            if name == "id":
                self.ids.append(value or "")
            if name in ("href", "src"):
                self.links.append(value or "")


def read(page: str) -> Elements:
    elements = Elements()
    elements.feed(page)
    return elements


def test_the_page_loads_nothing_and_runs_nothing() -> None:
    elements = read(render(build_page(two_arms(), None)))
    assert elements.names.isdisjoint({"script", "link", "img", "iframe", "object", "embed", "base", "form"})
    assert all(link.startswith("#") for link in elements.links)
    assert not any(name.startswith("on") for name in elements.attributes)


def test_every_link_leads_somewhere_and_no_id_stands_twice() -> None:
    elements = read(render(build_page(two_arms(), None)))
    assert elements.links
    assert {link.removeprefix("#") for link in elements.links} <= set(elements.ids)
    assert len(elements.ids) == len(set(elements.ids))


def test_hostile_text_is_shown_and_not_obeyed() -> None:
    plain = read(render(build_page(two_arms(), None)))
    page = render(build_page(two_arms(HOSTILE, title=HOSTILE), None))
    hostile = read(page)
    assert hostile.names == plain.names
    assert hostile.attributes == plain.attributes
    assert "<script" not in page
    assert html.escape("<script>alert(1)</script>") in page
    assert "{{ 7 * 7 }}" in page


def test_the_page_says_what_was_measured() -> None:
    page = render(build_page(two_arms(), None))
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))
    assert "arm b named 50% on held-out bugs and 50% on held-out projects" in text
    assert "arm a named 0% and 0%" in text
    assert "does not stand there" in text
    assert "holds a line of the fix" in text
    assert "Nothing was handed over" in text
    assert "How the model was trained" not in text


def test_a_page_without_episodes_and_one_of_tasks_without_splits_can_be_made() -> None:
    empty = evaluation({"a": {}}, [make_task()])
    assert "No arm" not in render(build_page(empty, None))
    none = dataclasses.replace(empty, summary=empty.summary.model_copy(update={"arms": ()}))
    assert "No arm has finished an episode" in render(build_page(none, None))
    plain = make_task().model_copy(update={"tags": {}})
    page = render(build_page(evaluation({"a": {"t": make_trajectory(task=plain)}}, [plain]), None))
    assert "All tasks" in page


def test_traces_beyond_the_limit_are_counted() -> None:
    page = build_page(two_arms(), None, most_traces=2)
    assert page.traces_left_out == 2
    assert [arm.trace is None for row in page.tasks for arm in row.arms] == [False, False, True, True]
    assert "2 traces are left out here" in render(page)


def test_the_report_draws_the_loss_curve(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    rows = [{"step": 1, "loss": 3.0}, {"step": 2, "loss": 2.0}, {"step": 2, "eval_loss": 2.5}, {"train_runtime": 4}]
    log.write_text("\n".join(json.dumps(row) for row in rows) + "\n")
    made = two_arms(vars={"train": str(tmp_path)}, training_log="{train}/log.jsonl")
    write_report(made, tmp_path / "report.html", loss_curve(made.config))
    page = (tmp_path / "report.html").read_text()
    assert "How the model was trained" in page
    assert 'class="train"' in page
    assert 'class="held-out"' not in page
    assert loss_curve(two_arms().config) is None


def test_losses_are_read_by_step_and_odd_rows_left_out(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text('{"step": 2, "loss": 1.5}\n{"step": 1, "loss": 2}\n{"step": 3, "loss": NaN}\n[]\n{"loss": 1}\n\n')
    assert read_losses(log) == [("training", "train", [(1.0, 2.0), (2.0, 1.5)]), ("held out", "held-out", [])]
    log.write_text("{")
    with pytest.raises(DatasetError, match="cannot be read"):
        read_losses(log)
    with pytest.raises(DatasetError, match="there is no training log"):
        read_losses(tmp_path / "nowhere")


def test_the_terminal_table_has_a_line_an_arm_and_group() -> None:
    out = io.StringIO()
    print_table(two_arms().summary, Console(file=out, width=160))
    text = out.getvalue()
    assert "held-out bugs: 1 tasks" in text
    assert text.count("arm a") == 2
    assert "1,200" in text


# --- the pieces ---------------------------------------------------------------------------------------------------


def test_quotes_are_marked_where_they_stand() -> None:
    pieces = mark_quotes("a  =\n 1; b = 2", [(1, "a = 1"), (2, "b = 2"), (3, "1; b"), (4, " "), (5, "c")])
    assert [(piece.text, piece.finding) for piece in pieces] == [("a  =\n 1", 1), ("; ", None), ("b = 2", 2)]


@given(text=st.text(max_size=60), quotes=st.lists(st.text(max_size=5), max_size=4))
def test_marking_changes_no_character(text: str, quotes: list[str]) -> None:
    pieces = mark_quotes(text, list(enumerate(quotes)))
    assert "".join(piece.text for piece in pieces) == text


def test_long_observations_are_cut_and_the_rest_counted() -> None:
    trace = show_trace(make_trajectory([make_step(0, "x" * (OBSERVATION_CHARS + 7))]), "a", {})
    assert trace.steps[0].left_out == 7


def test_the_picture_ties_each_finding_to_its_step() -> None:
    steps = [make_step(index, f"value {index}") for index in range(3)]
    pack = make_pack(("cart.py", 8, 8), findings=[(2, "value 2"), (0, "other"), (9, "value 2")])
    picture = trace_map(show_trace(make_trajectory(steps, pack), "a", {"cart.py": {8}}))
    assert [link.grounded for link in picture.links] == [True, False]
    assert (len(picture.steps), len(picture.findings)) == (3, 3)
    alone = trace_map(show_trace(make_trajectory(), "a", {}))
    assert (alone.steps, alone.links) == ((), ())


def measured(value: float | None) -> Measured:
    return Measured(value=value, low=value, high=value, count=0 if value is None else 3)


@given(values=st.lists(st.none() | st.floats(0, 1), min_size=1, max_size=3))
def test_dots_stay_inside_their_chart(values: list[float | None]) -> None:
    chart = dot_chart("t", [("arm", 0, [(str(index), measured(value)) for index, value in enumerate(values)])])
    (row,) = chart.rows
    assert len(row.marks) == sum(value is not None for value in values)
    assert bool(row.note) == (not row.marks)
    for mark in row.marks:
        assert chart.left <= mark.low <= mark.x <= mark.high <= chart.right
        assert chart.top <= mark.y <= chart.bottom


@given(low=st.floats(-1e3, 1e3), span=st.floats(0, 1e4))
def test_ticks_are_round_and_hold_the_data(low: float, span: float) -> None:
    ticks = nice_ticks(low, low + span)
    assert ticks == sorted(ticks)
    assert ticks[0] <= low + 1e-6
    assert ticks[-1] >= low + span - 1e-6
    assert len(ticks) <= 12


def test_a_line_chart_needs_two_points() -> None:
    assert line_chart([("training", "train", [(1, 2)]), ("held out", "held-out", [])]) is None
    chart = line_chart([("training", "train", [(1, 2), (3, 0.5)])])
    assert chart is not None
    assert chart.series[0].last == "0.50"


def test_the_arm_of_the_showcase_can_be_named() -> None:
    page = build_page(two_arms(trace_arm="a"), None)
    assert page.showcase is not None
    assert page.showcase.arm == "arm a"

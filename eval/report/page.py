"""What the report page says, made from an evaluation; the template only lays it out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gumshoe.env.tasks import gold_lines
from gumshoe.eval.report.charts import DotChart, LineChart, dot_chart
from gumshoe.eval.report.metrics import (
    METRICS,
    SOLVED,
    UNKNOWN,
    Metric,
    measured,
    named,
    percent,
    shown_groups,
    write_cell,
)
from gumshoe.eval.report.plots import Plot, calibration_plot, cost_plot
from gumshoe.eval.report.tables import Seconds, Table, conduct_table, repair_tables, seeker_tables, seekers
from gumshoe.eval.report.tasks import TaskRow, task_rows
from gumshoe.eval.report.traces import Trace, TraceMap, show_trace, trace_map
from gumshoe.eval.results import ALL, ArmSummary, Comparison, Result
from gumshoe.eval.run import Evaluation
from gumshoe.eval.summarise import seconds_per_resolved

__all__ = ["Page", "build_page"]

PLOTTED = ("line_recall", "function_recall", "file_recall", "valid_calls", "grounding", "first_right")
DIFFERENCES = ("line_recall", "valid_calls")


@dataclass(frozen=True)
class Tile:
    """A figure at the top: the arm that the page is about, and what it is compared with."""

    title: str
    value: str
    interval: str
    versus: str


@dataclass(frozen=True)
class Showcase:
    """The trace that is drawn at the top."""

    arm: str
    task: str
    trace: Trace
    picture: TraceMap


@dataclass(frozen=True)
class Page:
    """Everything on the page."""

    title: str
    lead: str
    facts: tuple[tuple[str, str], ...]
    tiles: tuple[Tile, ...]
    tables: tuple[Table, ...]
    conduct: Table | None
    tools: tuple[tuple[str, int, str], ...]
    groups: tuple[str, ...]
    charts: tuple[DotChart, ...]
    differences: tuple[DotChart, ...]
    baseline: str
    solver: str
    repairs: tuple[Table, ...]
    worth: tuple[DotChart, ...]
    cost: Plot | None
    calibration: Plot | None
    calibration_errors: tuple[tuple[str, int, str], ...]
    losses: LineChart | None
    showcase: Showcase | None
    arms: tuple[tuple[str, int], ...]
    tasks: tuple[TaskRow, ...]
    marked: str
    traces_left_out: int
    flaky: tuple[str, ...]


def build_page(evaluation: Evaluation, losses: LineChart | None, *, most_traces: int = 400) -> Page:
    """The page of an evaluation; traces beyond the first `most_traces` are left out and counted."""
    summary = evaluation.summary
    groups = shown_groups(summary)
    hero, baseline = _hero(evaluation), _baseline(evaluation)
    rows, left_out = task_rows(evaluation, most_traces)
    repairs = tuple(repair_tables(summary, _seconds(evaluation)))
    return Page(
        title=summary.title,
        lead=_lead(hero, baseline, groups, summary.tasks[ALL]),
        facts=_facts(evaluation, groups),
        tiles=tuple(_tiles(evaluation, hero, baseline, groups)),
        tables=tuple(seeker_tables(summary)),
        conduct=conduct_table(summary),
        tools=tuple((arm.title, number, _tools(arm)) for number, arm in seekers(summary) if arm.tools),
        groups=tuple(named(group) for group in groups),
        charts=tuple(_chart(seekers(summary), metric, groups) for metric in METRICS if metric.name in PLOTTED),
        differences=tuple(_differences(evaluation, groups)),
        baseline=baseline.title if baseline is not None else "",
        solver=summary.solver,
        repairs=repairs,
        worth=_worth(evaluation, groups) if repairs else (),
        cost=cost_plot(summary),
        calibration=calibration_plot(summary),
        calibration_errors=tuple(
            (arm.title, number, f"{arm.calibration_error:.2f}")
            for number, arm in enumerate(summary.arms)
            if arm.calibration_error is not None
        ),
        losses=losses,
        showcase=_showcase(evaluation, hero),
        arms=tuple((arm.title, number) for number, arm in enumerate(summary.arms)),
        tasks=rows,
        marked="Whether the bug was repaired" if repairs else "The share of the fix's lines that each arm named",
        traces_left_out=left_out,
        flaky=tuple(f"{one.task_id} ({one.passed} of {one.runs} runs)" for one in summary.flaky),
    )


def _hero(evaluation: Evaluation) -> ArmSummary | None:
    """The arm the page is about: the one named, else the last model that was served, else the first arm."""
    arms = evaluation.summary.arms
    wanted = evaluation.config.trace_arm
    chosen = [arm for arm in arms if arm.name == wanted]
    served = [arm for arm in arms if arm.model is not None]
    return (chosen or served[-1:] or list(arms[:1]) or [None])[0]


def _baseline(evaluation: Evaluation) -> ArmSummary | None:
    config = evaluation.config
    wanted = next((arm.name for arm in config.arms if arm.baseline), config.arms[0].name)
    return next((arm for arm in evaluation.summary.arms if arm.name == wanted), None)


def _lead(hero: ArmSummary | None, baseline: ArmSummary | None, groups: Sequence[str], tasks: int) -> str:
    if hero is None:
        return "No arm has finished an episode."
    said = [f"{percent(measured(hero, group, 'line_recall').value)} on {named(group)}" for group in groups]
    lead = f"Of the lines that a fix has to touch, {hero.title} named {' and '.join(said)}"
    if baseline is not None and baseline.name != hero.name:
        other = [percent(measured(baseline, group, "line_recall").value) for group in groups]
        lead += f"; {baseline.title} named {' and '.join(other)}"
    return f"{lead}. All arms worked on the same {tasks} tasks, in live sandboxes."


def _facts(evaluation: Evaluation, groups: Sequence[str]) -> tuple[tuple[str, str], ...]:
    summary = evaluation.summary
    counted = ", ".join(f"{summary.tasks[group]} {named(group)}" for group in groups)
    failed = sum(arm.failed for arm in summary.arms)
    backends = sorted({one.provenance.sandbox for one in evaluation.trajectories.values()})
    return (
        ("tasks", counted),
        ("episodes", str(sum(arm.episodes for arm in summary.arms)) + (f", {failed} failed" if failed else "")),
        *((("solver", summary.solver),) if summary.solver else ()),
        ("sandbox", ", ".join(backends) or UNKNOWN),
        ("seed", str(summary.seed)),
        ("config", summary.config_hash[:12]),
    )


def _tiles(
    evaluation: Evaluation, hero: ArmSummary | None, baseline: ArmSummary | None, groups: Sequence[str]
) -> list[Tile]:
    if hero is None:
        return []
    wanted = [("line_recall", group) for group in groups] + [("valid_calls", ALL), ("grounding", ALL)]
    tiles = [_tile(hero, baseline, metric, group) for metric, group in wanted]
    return [*_uplift_tile(evaluation, hero), *tiles]


def _tile(hero: ArmSummary, baseline: ArmSummary | None, name: str, group: str) -> Tile:
    metric = next(metric for metric in METRICS if metric.name == name)
    cell = write_cell(measured(hero, group, name), metric)
    versus = ""
    if baseline is not None and baseline.name != hero.name:
        versus = f"{baseline.title}: {write_cell(measured(baseline, group, name), metric).value}"
    return Tile(f"{metric.title}, {named(group)}", cell.value, cell.interval, versus)


def _uplift_tile(evaluation: Evaluation, hero: ArmSummary) -> list[Tile]:
    """What the hero's packs add to what the solver repairs alone."""
    for one in evaluation.summary.comparisons:
        value = one.difference.value
        if (one.arm, one.baseline, one.metric, one.group) == (
            hero.name,
            "no_pack",
            "solved",
            ALL,
        ) and value is not None:
            low, high = one.difference.low or 0.0, one.difference.high or 0.0
            p = "" if one.mcnemar_p is None else f"McNemar p {one.mcnemar_p:.2g}"
            return [Tile("Uplift, points", f"{value * 100:+.0f}", f"{low * 100:+.0f} to {high * 100:+.0f}", p)]
    return []


def _tools(arm: ArmSummary) -> str:
    used = sorted(arm.tools.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{name} {count:.1f}" for name, count in used)


def _chart(arms: Sequence[tuple[int, ArmSummary]], metric: Metric, groups: Sequence[str]) -> DotChart:
    rows = [
        (arm.title, number, [(named(group), measured(arm, group, metric.name)) for group in groups])
        for number, arm in arms
    ]
    return dot_chart(metric.title, rows)


def _differences(evaluation: Evaluation, groups: Sequence[str]) -> list[DotChart]:
    """Paired differences to the baseline, one picture a metric."""
    return [
        chart
        for metric in METRICS
        if metric.name in DIFFERENCES
        if (chart := _difference(evaluation, metric.name, f"{metric.title}: difference", groups)) is not None
    ]


def _difference(
    evaluation: Evaluation, metric: str, title: str, groups: Sequence[str], baseline: str | None = None
) -> DotChart | None:
    found: dict[tuple[str, str], Comparison] = {
        (one.arm, one.group): one
        for one in evaluation.summary.comparisons
        if one.metric == metric and baseline in (None, one.baseline)
    }
    rows = [
        (
            arm.title,
            number,
            [(named(group), found[arm.name, group].difference) for group in groups if (arm.name, group) in found],
        )
        for number, arm in enumerate(evaluation.summary.arms)
    ]
    rows = [row for row in rows if row[2]]
    return dot_chart(title, rows, low=-1.0, high=1.0) if rows else None


def _worth(evaluation: Evaluation, groups: Sequence[str]) -> tuple[DotChart, ...]:
    """What is repaired in each arm, and what that adds to what the solver repairs alone."""
    arms = [(number, arm) for number, arm in enumerate(evaluation.summary.arms) if measured(arm, ALL, "solved").count]
    names = {arm.name for _, arm in arms}
    alone = "no_pack" if "no_pack" in names else None
    title = "Repaired: added to the solver alone" if alone else "Repaired: difference"
    uplift = _difference(evaluation, "solved", title, groups, alone)
    debugger = _difference(evaluation, "solved", "Repaired: with the debugger, and without", groups, "rewrite")
    return tuple(
        chart for chart in (_chart(arms, SOLVED, groups), uplift, debugger if alone else None) if chart is not None
    )


def _seconds(evaluation: Evaluation) -> Seconds:
    by_arm: dict[str, list[Result]] = {}
    for result in evaluation.results:
        by_arm.setdefault(result.arm, []).append(result)
    return {name: seconds_per_resolved(evaluation.config, results) for name, results in by_arm.items()}


def _showcase(evaluation: Evaluation, hero: ArmSummary | None) -> Showcase | None:
    """The hero's most telling episode: right first, then most findings seen, then fewest steps."""
    if hero is None:
        return None
    ours = [result for result in evaluation.results if result.arm == hero.name and result.trajectory]
    if not ours:
        return None
    best = max(ours, key=_tells)
    oracle = {task.id: oracle for task, oracle in evaluation.tasks}[best.task_id]
    trajectory = evaluation.trajectories[f"{hero.name}/{best.trajectory}"]
    trace = show_trace(trajectory, "showcase", gold_lines(oracle.gold_patch))
    return Showcase(hero.title, best.task_id, trace, trace_map(trace))


def _tells(result: Result) -> tuple[float, ...]:
    scores = result.scores
    wanted = ("solved", "line_recall", "reported", "grounding", "debugged", "line_precision", "valid_calls")
    return (*(scores.get(name) or 0.0 for name in wanted), -(scores.get("steps") or 0.0))

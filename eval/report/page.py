"""What the report page says, made from an evaluation; the template only lays it out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gumshoe.env.tasks import gold_lines
from gumshoe.eval.report.charts import DotChart, LineChart, dot_chart
from gumshoe.eval.report.traces import Trace, TraceMap, show_trace, trace_map
from gumshoe.eval.results import ALL, ArmSummary, Comparison, Measured, Result
from gumshoe.eval.run import Evaluation
from gumshoe.records import Oracle, Task

__all__ = ["Cell", "Page", "TaskRow", "build_page"]

GROUP_NAMES = {
    ALL: "all tasks",
    "heldout_bugs": "held-out bugs",
    "heldout_projects": "held-out projects",
    "train": "training tasks",
}


@dataclass(frozen=True)
class Metric:
    """How a metric is named and written."""

    name: str
    title: str
    help: str
    share: bool = True


METRICS = (
    Metric("valid_calls", "Valid calls", "turns whose tool calls could be carried out"),
    Metric("reported", "Reported", "episodes that handed something over before their limit"),
    Metric("file_recall", "File recall", "files that the fix touches, named in the report"),
    Metric("function_recall", "Function recall", "functions that the fix touches, named in the report"),
    Metric("line_recall", "Line recall", "lines that the fix touches, named in the report"),
    Metric("line_precision", "Line precision", "lines named in the report that the fix touches"),
    Metric("first_right", "First right", "1 / rank of the first right location"),
    Metric("grounding", "Grounded", "findings whose quote stands in the step that they cite"),
    Metric("debugged", "Debugged", "episodes that used the debugger"),
    Metric("steps", "Steps", "turns an episode took", share=False),
    Metric("tokens", "Tokens", "tokens an episode used, prompt and answer", share=False),
)
SOLVER = "solver"
"""Policy kind of the arms in which the solver works without a seeker."""
UNKNOWN = "\N{EN DASH}"
SOLVED = Metric("solved", "Solved", "bugs that a fixed scripted solver repairs, looking only where the report points")
PLOTTED = ("line_recall", "function_recall", "file_recall", "valid_calls", "grounding", "first_right")


@dataclass(frozen=True)
class Cell:
    """A measure as text: the mean, its interval, and the share that a bar shows (None: no bar)."""

    value: str
    interval: str
    share: float | None
    best: bool = False


@dataclass(frozen=True)
class TableRow:
    """One arm in a table."""

    label: str
    colour: int
    cells: tuple[Cell, ...]
    episodes: int


@dataclass(frozen=True)
class Table:
    """The arms side by side on one group of tasks."""

    title: str
    tasks: int
    rows: tuple[TableRow, ...]


@dataclass(frozen=True)
class Tile:
    """A figure at the top: the arm that the page is about, and what it is compared with."""

    title: str
    value: str
    interval: str
    versus: str


@dataclass(frozen=True)
class ArmTrace:
    """One arm's episode on a task."""

    label: str
    colour: int
    cells: tuple[tuple[str, str], ...]
    trace: Trace | None


@dataclass(frozen=True)
class TaskRow:
    """A task with what each arm made of it; `marks` is the line recall an arm, in the arms' order."""

    anchor: str
    id: str
    project: str
    split: str
    operator: str
    problem: str
    patch: tuple[tuple[str, str], ...]
    gold: str
    marks: tuple[Cell, ...]
    arms: tuple[ArmTrace, ...]


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
    metrics: tuple[Metric, ...]
    tables: tuple[Table, ...]
    groups: tuple[str, ...]
    charts: tuple[DotChart, ...]
    differences: tuple[DotChart, ...]
    baseline: str
    worth: tuple[DotChart, ...]
    losses: LineChart | None
    showcase: Showcase | None
    arms: tuple[tuple[str, int], ...]
    tasks: tuple[TaskRow, ...]
    traces_left_out: int


def build_page(evaluation: Evaluation, losses: LineChart | None, *, most_traces: int = 400) -> Page:
    """The page of an evaluation; traces beyond the first `most_traces` are left out and counted."""
    summary = evaluation.summary
    arms = [arm for arm in summary.arms if arm.policy.kind != SOLVER]
    groups = [group for group in summary.tasks if group != ALL] or [ALL]
    hero, baseline = _hero(evaluation), _baseline(evaluation)
    rows, left_out = _task_rows(evaluation, most_traces)
    return Page(
        title=summary.title,
        lead=_lead(hero, baseline, groups, summary.tasks[ALL]),
        facts=_facts(evaluation, groups),
        tiles=tuple(_tiles(hero, baseline, groups)),
        metrics=METRICS,
        tables=tuple(_table(arms, group, summary.tasks[group]) for group in groups),
        groups=tuple(_named(group) for group in groups),
        charts=tuple(_chart(arms, metric, groups) for metric in METRICS if metric.name in PLOTTED),
        differences=tuple(_differences(evaluation, groups)),
        baseline=baseline.title if baseline is not None else "",
        losses=losses,
        showcase=_showcase(evaluation, hero),
        worth=_worth(evaluation, groups),
        arms=tuple((arm.title, number) for number, arm in enumerate(arms)),
        tasks=rows,
        traces_left_out=left_out,
    )


def percent(value: float | None) -> str:
    """A share as people read it: `43%`; a dash where it is unknown."""
    return UNKNOWN if value is None else f"{value * 100:.0f}%"


def write_cell(measured: Measured, metric: Metric) -> Cell:
    """A measure as text."""
    if measured.value is None:
        return Cell(UNKNOWN, "", None)
    low, high = measured.low or 0.0, measured.high or 0.0
    if metric.share:
        return Cell(percent(measured.value), f"{low * 100:.0f} to {high * 100:.0f}", measured.value)
    digits = 0 if measured.value >= 100 else 1
    return Cell(f"{measured.value:,.{digits}f}", f"{low:,.{digits}f} to {high:,.{digits}f}", None)


def _hero(evaluation: Evaluation) -> ArmSummary | None:
    """The arm the page is about: the one named, else the last model that was served, else the first arm."""
    arms = evaluation.summary.arms
    wanted = evaluation.config.trace_arm
    named = [arm for arm in arms if arm.name == wanted]
    served = [arm for arm in arms if arm.model is not None]
    return (named or served[-1:] or list(arms[:1]) or [None])[0]


def _baseline(evaluation: Evaluation) -> ArmSummary | None:
    config = evaluation.config
    wanted = next((arm.name for arm in config.arms if arm.baseline), config.arms[0].name)
    return next((arm for arm in evaluation.summary.arms if arm.name == wanted), None)


def _lead(hero: ArmSummary | None, baseline: ArmSummary | None, groups: Sequence[str], tasks: int) -> str:
    if hero is None:
        return "No arm has finished an episode."
    said = [f"{percent(_measured(hero, group, 'line_recall').value)} on {_named(group)}" for group in groups]
    lead = f"Of the lines that a fix has to touch, {hero.title} named {' and '.join(said)}"
    if baseline is not None and baseline.name != hero.name:
        other = [percent(_measured(baseline, group, "line_recall").value) for group in groups]
        lead += f"; {baseline.title} named {' and '.join(other)}"
    return f"{lead}. All arms worked on the same {tasks} tasks, in live sandboxes."


def _facts(evaluation: Evaluation, groups: Sequence[str]) -> tuple[tuple[str, str], ...]:
    summary = evaluation.summary
    counted = ", ".join(f"{summary.tasks[group]} {_named(group)}" for group in groups)
    failed = sum(arm.failed for arm in summary.arms)
    backends = sorted({one.provenance.sandbox for one in evaluation.trajectories.values()})
    return (
        ("tasks", counted),
        ("episodes", str(sum(arm.episodes for arm in summary.arms)) + (f", {failed} failed" if failed else "")),
        ("sandbox", ", ".join(backends) or UNKNOWN),
        ("seed", str(summary.seed)),
        ("config", summary.config_hash[:12]),
    )


def _tiles(hero: ArmSummary | None, baseline: ArmSummary | None, groups: Sequence[str]) -> list[Tile]:
    if hero is None:
        return []
    wanted = [("line_recall", group) for group in groups] + [("valid_calls", ALL), ("grounding", ALL)]
    return [_tile(hero, baseline, metric, group) for metric, group in wanted]


def _tile(hero: ArmSummary, baseline: ArmSummary | None, name: str, group: str) -> Tile:
    metric = next(metric for metric in METRICS if metric.name == name)
    cell = write_cell(_measured(hero, group, name), metric)
    versus = ""
    if baseline is not None and baseline.name != hero.name:
        versus = f"{baseline.title}: {write_cell(_measured(baseline, group, name), metric).value}"
    return Tile(f"{metric.title}, {_named(group)}", cell.value, cell.interval, versus)


def _measured(arm: ArmSummary, group: str, metric: str) -> Measured:
    unknown = Measured(value=None, low=None, high=None, count=0)
    return arm.groups.get(group, {}).get(metric, unknown)


def _table(arms: Sequence[ArmSummary], group: str, tasks: int) -> Table:
    rows = [
        TableRow(
            label=arm.title,
            colour=number,
            cells=tuple(write_cell(_measured(arm, group, metric.name), metric) for metric in METRICS),
            episodes=arm.episodes,
        )
        for number, arm in enumerate(arms)
    ]
    return Table(_named(group), tasks, tuple(rows))


def _chart(arms: Sequence[ArmSummary], metric: Metric, groups: Sequence[str]) -> DotChart:
    rows = [
        (arm.title, number, [(_named(group), _measured(arm, group, metric.name)) for group in groups])
        for number, arm in enumerate(arms)
    ]
    return dot_chart(metric.title, rows)


def _differences(evaluation: Evaluation, groups: Sequence[str]) -> list[DotChart]:
    """Paired differences to the baseline, one picture a metric."""
    found: dict[tuple[str, str, str], Comparison] = {
        (one.metric, one.arm, one.group): one for one in evaluation.summary.comparisons
    }
    charts: list[DotChart] = []
    for metric in METRICS:
        rows = [
            (
                arm.title,
                number,
                [
                    (_named(group), found[metric.name, arm.name, group].difference)
                    for group in groups
                    if (metric.name, arm.name, group) in found
                ],
            )
            for number, arm in enumerate(evaluation.summary.arms)
        ]
        rows = [row for row in rows if row[2]]
        if rows and metric.name in ("line_recall", "valid_calls"):
            charts.append(dot_chart(f"{metric.title}: difference", rows, low=-1.0, high=1.0))
    return charts


def _worth(evaluation: Evaluation, groups: Sequence[str]) -> tuple[DotChart, ...]:
    """What the solver repairs with each report, and what that adds to what it repairs alone; empty without one."""
    arms = evaluation.summary.arms
    if not any(arm.policy.kind == SOLVER for arm in arms):
        return ()
    added = {(one.arm, one.group): one.difference for one in evaluation.summary.comparisons if one.metric == "solved"}
    rows = [
        (arm.title, number, [(_named(group), added[arm.name, group]) for group in groups if (arm.name, group) in added])
        for number, arm in enumerate(arms)
    ]
    return (
        _chart(arms, SOLVED, groups),
        dot_chart("Solved: added to the solver alone", [row for row in rows if row[2]], low=-1.0, high=1.0),
    )


def _named(group: str) -> str:
    return GROUP_NAMES.get(group, group)


def _showcase(evaluation: Evaluation, hero: ArmSummary | None) -> Showcase | None:
    """The hero's most telling episode: right first, then most findings seen, then fewest steps."""
    if hero is None:
        return None
    ours = [result for result in evaluation.results if result.arm == hero.name]
    if not ours:
        return None
    best = max(ours, key=_tells)
    oracle = {task.id: oracle for task, oracle in evaluation.tasks}[best.task_id]
    trajectory = evaluation.trajectories[f"{hero.name}/{best.trajectory}"]
    trace = show_trace(trajectory, "showcase", gold_lines(oracle.gold_patch))
    return Showcase(hero.title, best.task_id, trace, trace_map(trace))


def _tells(result: Result) -> tuple[float, ...]:
    scores = result.scores
    wanted = ("line_recall", "reported", "grounding", "debugged", "line_precision", "valid_calls")
    return (*(scores.get(name) or 0.0 for name in wanted), -(scores.get("steps") or 0.0))


def _task_rows(evaluation: Evaluation, most: int) -> tuple[tuple[TaskRow, ...], int]:
    by_place: dict[tuple[str, str], list[Result]] = {}
    for result in evaluation.results:
        by_place.setdefault((result.task_id, result.arm), []).append(result)
    rows: list[TaskRow] = []
    budget = most
    for number, (task, oracle) in enumerate(evaluation.tasks):
        chosen = [
            (arm, result)
            for arm in evaluation.summary.arms
            if arm.policy.kind != SOLVER
            for result in by_place.get((task.id, arm.name), [])[:1]
        ]
        rows.append(_task_row(evaluation, number, task, oracle, chosen, with_traces=budget >= len(chosen)))
        budget -= len(chosen)
    return tuple(rows), max(0, -budget)


def _task_row(
    evaluation: Evaluation,
    number: int,
    task: Task,
    oracle: Oracle,
    chosen: Sequence[tuple[ArmSummary, Result]],
    *,
    with_traces: bool,
) -> TaskRow:
    gold = gold_lines(oracle.gold_patch)
    colours = {arm.name: colour for colour, arm in enumerate(evaluation.summary.arms)}
    results = {arm.name: result for arm, result in chosen}
    arms = tuple(
        ArmTrace(
            label=arm.title,
            colour=colours[arm.name],
            cells=tuple((metric.title, _single(result, metric)) for metric in METRICS),
            trace=show_trace(
                evaluation.trajectories[f"{arm.name}/{result.trajectory}"], f"t{number}-a{colours[arm.name]}", gold
            )
            if with_traces
            else None,
        )
        for arm, result in chosen
    )
    return TaskRow(
        anchor=f"t{number}",
        id=task.id,
        project=task.tags.get("project", ""),
        split=GROUP_NAMES.get(task.tags.get("split", ""), task.tags.get("split", "")),
        operator=task.tags.get("operator", ""),
        problem=task.problem_statement,
        patch=tuple(_diff_line(line) for line in oracle.gold_patch.splitlines()),
        gold=", ".join(f"{path}:{line}" for path, lines in sorted(gold.items()) for line in sorted(lines)),
        marks=tuple(_mark(results.get(arm.name)) for arm in evaluation.summary.arms if arm.policy.kind != SOLVER),
        arms=arms,
    )


def _single(result: Result, metric: Metric) -> str:
    value = result.scores.get(metric.name)
    if value is None:
        return UNKNOWN
    return percent(value) if metric.share else f"{value:,.0f}"


def _mark(result: Result | None) -> Cell:
    value = result.scores.get("line_recall") if result is not None else None
    stop = result.stop if result is not None else None
    return Cell(percent(value), "" if stop is None else stop.value.replace("_", " "), value)


def _diff_line(line: str) -> tuple[str, str]:
    """A line of a diff with its kind, for its colour."""
    if line.startswith(("+++", "---", "diff ", "index ", "@@")):
        return "head", line
    return {"+": "plus", "-": "minus"}.get(line[:1], "same"), line

"""The rows of the page: a task with what each arm made of it, its traces, diffs and verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from gumshoe.env.tasks import gold_lines
from gumshoe.eval.report.metrics import GROUP_NAMES, METRICS, UNKNOWN, Metric, percent
from gumshoe.eval.report.traces import Trace, show_trace
from gumshoe.eval.results import ArmSummary, Result
from gumshoe.eval.run import Evaluation
from gumshoe.eval.summarise import SOLVER
from gumshoe.records import Oracle, Task

__all__ = ["ArmTrace", "DiffLine", "Mark", "TaskRow", "task_rows"]

DiffLine = tuple[str, str]
"""Kind of the line, for its colour, and the line."""
MOST_TESTS = 20
VERDICTS = {1.0: "repaired", 0.0: "not repaired"}


@dataclass(frozen=True)
class Mark:
    """An arm's figure in a row: what it says, and the share that colours it (None: unknown)."""

    value: str
    share: float | None
    title: str


@dataclass(frozen=True)
class ArmTrace:
    """One arm's work on a task: the seeker's trace, the solver's, the patch that came of it, and the verdicts on it."""

    label: str
    colour: int
    facts: tuple[str, ...]
    trace: Trace | None
    solver: Trace | None
    patch: tuple[DiffLine, ...]
    verdicts: tuple[tuple[str, bool], ...]
    left_out: bool


@dataclass(frozen=True)
class TaskRow:
    """A task with what each arm made of it; `marks` has one entry an arm, in the arms' order."""

    anchor: str
    id: str
    project: str
    split: str
    operator: str
    problem: str
    patch: tuple[DiffLine, ...]
    tests: tuple[str, ...]
    tests_left_out: int
    marks: tuple[Mark, ...]
    arms: tuple[ArmTrace, ...]


def task_rows(evaluation: Evaluation, most: int) -> tuple[tuple[TaskRow, ...], int]:
    """The rows of all tasks; traces beyond the first `most` are left out, and counted."""
    by_place: dict[tuple[str, str], Result] = {}
    for result in evaluation.results:
        by_place.setdefault((result.task_id, result.arm), result)
    rows: list[TaskRow] = []
    left = most
    for number, (task, oracle) in enumerate(evaluation.tasks):
        chosen = {arm.name: by_place[task.id, arm.name] for arm in _arms(evaluation) if (task.id, arm.name) in by_place}
        traces = sum(bool(one.trajectory) + bool(one.solver) for one in chosen.values())
        rows.append(_row(evaluation, number, task, oracle, chosen, with_traces=left >= traces))
        left -= traces
    return tuple(rows), max(0, -left)


def diff_lines(patch: str) -> tuple[DiffLine, ...]:
    """The lines of a diff with their kinds."""
    return tuple(_diff_line(line) for line in patch.splitlines())


def _arms(evaluation: Evaluation) -> Sequence[ArmSummary]:
    return evaluation.summary.arms


def _row(
    evaluation: Evaluation,
    number: int,
    task: Task,
    oracle: Oracle,
    chosen: Mapping[str, Result],
    *,
    with_traces: bool,
) -> TaskRow:
    gold = gold_lines(oracle.gold_patch)
    arms = tuple(
        _arm_trace(evaluation, arm, colour, chosen[arm.name], f"t{number}-a{colour}", gold, with_traces=with_traces)
        for colour, arm in enumerate(_arms(evaluation))
        if arm.name in chosen
    )
    tests = oracle.fail_to_pass
    return TaskRow(
        anchor=f"t{number}",
        id=task.id,
        project=task.tags.get("project", ""),
        split=GROUP_NAMES.get(task.tags.get("split", ""), task.tags.get("split", "")),
        operator=task.tags.get("operator", ""),
        problem=task.problem_statement,
        patch=diff_lines(oracle.gold_patch),
        tests=tests[:MOST_TESTS],
        tests_left_out=max(0, len(tests) - MOST_TESTS),
        marks=tuple(_mark(evaluation, arm, chosen.get(arm.name)) for arm in _arms(evaluation)),
        arms=arms,
    )


def _arm_trace(
    evaluation: Evaluation,
    arm: ArmSummary,
    colour: int,
    result: Result,
    anchor: str,
    gold: Mapping[str, Set[int]],
    *,
    with_traces: bool,
) -> ArmTrace:
    def shown(key: str, name: str, tail: str) -> Trace | None:
        trajectory = evaluation.trajectories.get(key) if name and with_traces else None
        return None if trajectory is None else show_trace(trajectory, f"{anchor}{tail}", gold)

    verdicts = [
        (f"{who}: {VERDICTS.get(value, percent(value))}", value == 1.0)
        for name, who in (("solved", "tests"), ("official", "official harness"))
        if (value := result.scores.get(name)) is not None
    ]
    trace = shown(f"{arm.name}/{result.trajectory}", result.trajectory, "")
    solver = shown(f"solver/{arm.name}/{result.solver}", result.solver, "-solver")
    return ArmTrace(
        label=arm.title,
        colour=colour,
        facts=_facts(arm, result),
        trace=trace,
        solver=solver,
        patch=diff_lines(result.patch),
        verdicts=tuple(verdicts),
        left_out=bool(result.trajectory or result.solver) and not with_traces,
    )


def _facts(arm: ArmSummary, result: Result) -> tuple[str, ...]:
    """What stands in the arm's line before it is opened."""
    wanted = ("line_recall", "line_precision", "valid_calls", "grounding", "replayed", "steps")
    metrics = [] if arm.policy.kind == SOLVER else [metric for metric in METRICS if metric.name in wanted]
    said = [
        f"{metric.title.lower()} {_single(result, metric)}"
        for metric in metrics
        if metric.name != "replayed" or result.scores.get("replayed") is not None
    ]
    solver = (("solver_steps", "solver steps"), ("solver_tokens", "solver tokens"))
    said += [f"{title} {value:,.0f}" for name, title in solver if (value := result.scores.get(name)) is not None]
    return tuple(said)


def _single(result: Result, metric: Metric) -> str:
    value = result.scores.get(metric.name)
    if value is None:
        return UNKNOWN
    return percent(value) if metric.share else f"{value:,.0f}"


def _mark(evaluation: Evaluation, arm: ArmSummary, result: Result | None) -> Mark:
    """Whether the bug is repaired, where anybody repairs bugs; else the share of the fix's lines that was named."""
    repairs = bool(evaluation.summary.solver) or any("solved" in one.scores for one in evaluation.results)
    value = result.scores.get("solved" if repairs else "line_recall") if result is not None else None
    stop = result.stop.value.replace("_", " ") if result is not None and result.stop is not None else ""
    if repairs and value is not None:
        sign = {1.0: "\N{CHECK MARK}", 0.0: "\N{MULTIPLICATION SIGN}"}.get(value, percent(value))
        return Mark(sign, value, f"{arm.title}: {VERDICTS.get(value, percent(value))}" + (f", {stop}" if stop else ""))
    return Mark(percent(value), value, f"{arm.title}: {stop}")


def _diff_line(line: str) -> DiffLine:
    if line.startswith(("+++", "---", "diff ", "index ", "@@")):
        return "head", line
    return {"+": "plus", "-": "minus"}.get(line[:1], "same"), line

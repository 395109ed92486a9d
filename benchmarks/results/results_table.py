"""The tables of docs/results.md, from the folders of evaluations of the same tasks.

    python -m benchmarks.results.results_table runs/results/eval
    python -m benchmarks.results.results_table runs/results/eval --against vary --measure reported
    python -m benchmarks.results.results_table runs/results/solve --against oracle_pack

The tables are Markdown: each arm's means over all bugs, over those where the first suspect is wrong or tied, and over
the others; the paired comparisons with the first suspect, or with `--against`; how often stated confidence was right;
and, where a solver had the packs, what it made of them, compared with no pack, or with `--against`. Of an arm that
several folders have, the first one counts.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from gumshoe.eval.score.measures import mcnemar, wilson
from gumshoe.storage import read_json, read_jsonl

ALL, HARD, EASY = "all", "first suspect wrong or tied", "first suspect right"
MEASURES = {
    "function_acc@1": "function Acc@1",
    "file_acc@1": "file Acc@1",
    "top1_hit": "line hit at 1, of the reports",
    "line_f1": "line F1",
    "grounding": "grounded findings",
    "valid_calls": "valid calls",
    "reported": "reported",
    "steps": "turns",
    "tokens": "tokens",
    "seconds": "seconds",
}
YES_OR_NO = ("function_acc@1", "file_acc@1", "reported")
COUNTS = ("steps", "tokens", "seconds", "solver_tokens")

Rows = dict[str, dict[str, Any]]
"""The rows of an arm by the id of the task."""


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="folder of an evaluation")
    parser.add_argument("--against", metavar="ARM", help="arm that the others are compared with")
    parser.add_argument("--measure", default="function_acc@1", choices=YES_OR_NO, help="what seekers are compared by")
    options = parser.parse_args()
    summaries, rows = read_evaluations(options.runs)
    if options.against is not None and options.against not in summaries:
        parser.error(f"--against: no arm {options.against!r}, only {', '.join(summaries)}")
    labels = {name: arm["title"] for name, arm in summaries.items()}
    arms = seekers_of(summaries, rows)
    groups = grouped(next(iter(arms.values())))
    seekers = {name: labels[name] for name in arms}
    print(measures_table(arms, seekers, groups))
    baseline = options.against or "suspect"
    if baseline in arms:
        print()
        print(comparisons_table(arms, seekers, groups, baseline, options.measure))
    for arm in summaries.values():
        if arm.get("calibration"):
            print()
            print(calibration_table(arm))
    if any("solved" in row["scores"] for row in rows):
        print()
        print(solver_table(rows, labels, baseline=options.against or "no_pack"))


def read_evaluations(runs: Sequence[Path]) -> tuple[dict[str, dict[str, Any]], list[dict[str, Any]]]:
    """The summary of each arm by its name, and the rows of all; of an arm that several runs have, the first counts."""
    summaries: dict[str, dict[str, Any]] = {}
    rows: list[dict[str, Any]] = []
    for run in runs:
        arms = {arm["name"]: arm for arm in read_json(run / "summary.json")["arms"] if arm["name"] not in summaries}
        rows += [row for _, row in read_jsonl(run / "results.jsonl") if row["arm"] in arms]
        summaries |= arms
    return summaries, rows


def seekers_of(summaries: dict[str, dict[str, Any]], rows: Sequence[dict[str, Any]]) -> dict[str, Rows]:
    """The rows of the arms that seek, as `rows_by_arm` gives them."""
    return rows_by_arm(rows, [name for name, arm in summaries.items() if arm["seeks"]])


def rows_by_arm(rows: Sequence[dict[str, Any]], names: Sequence[str]) -> dict[str, Rows]:
    """The rows of the arms, for the tasks that all of them have finished."""
    arms: dict[str, Rows] = {name: {} for name in names}
    for row in rows:
        if row["arm"] in arms:
            arms[row["arm"]][row["task_id"]] = row
    common = set.intersection(*(set(of_arm) for of_arm in arms.values()))
    return {name: {task: row for task, row in of_arm.items() if task in common} for name, of_arm in arms.items()}


def grouped(rows: Rows) -> dict[str, list[str]]:
    """The tasks of each group that has any. Only harvested tasks have a tag that says where the suspect ranks."""
    ranks = {task: row["tags"].get("suspect") for task, row in sorted(rows.items())}
    groups = {
        ALL: list(ranks),
        HARD: [task for task, rank in ranks.items() if rank not in {None, "first"}],
        EASY: [task for task, rank in ranks.items() if rank == "first"],
    }
    return {group: tasks for group, tasks in groups.items() if tasks}


def mean(rows: Rows, measure: str, tasks: Sequence[str]) -> str:
    """The mean of a measure, where it is known, as a table shows it."""
    known = [value for task in tasks for value in [rows[task]["scores"].get(measure)] if value is not None]
    if not known:
        return ""
    return f"{fmean(known):,.1f}" if measure in COUNTS else f"{100 * fmean(known):.1f}%"


def measures_table(arms: dict[str, Rows], labels: dict[str, str], groups: dict[str, list[str]]) -> str:
    """A row for each measure, one for each group of tasks below the first."""
    lines = [f"| {len(groups[ALL])} bugs | {' | '.join(labels.values())} |", "|---" * (len(labels) + 1) + "|"]
    for measure, title in MEASURES.items():
        split = groups if measure == "function_acc@1" else {ALL: groups[ALL]}
        for group, tasks in split.items():
            name = title if group == ALL else f"the same, {group} ({len(tasks)})"
            cells = [mean(rows, measure, tasks) for rows in arms.values()]
            lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def comparisons_table(
    arms: dict[str, Rows], labels: dict[str, str], groups: dict[str, list[str]], baseline: str, measure: str
) -> str:
    """A measure that is 0 or 1, of each arm against the baseline, bug by bug."""
    about = "" if measure == "function_acc@1" else MEASURES[measure] + ", "
    lines = [f"| {about}compared with {labels[baseline]} | bugs | points | better | worse | p |", "|---" * 6 + "|"]
    for name, rows in arms.items():
        for group, tasks in groups.items():
            if name == baseline or group == EASY:
                continue
            before, after = ([is_right(each[task], measure) for task in tasks] for each in (arms[baseline], rows))
            test = mcnemar(before, after)
            points = 100 * (sum(after) - sum(before)) / len(tasks)
            numbers = f"{points:+.1f} | {test.only_second} | {test.only_first} | {test.p_value:.2g}"
            lines.append(f"| {labels[name]}, {group} | {len(tasks)} | {numbers} |")
    return "\n".join(lines)


def calibration_table(arm: dict[str, Any]) -> str:
    """How often the first place of a report held a line of the fix, by the confidence that was stated."""
    error = f"expected calibration error {arm['calibration_error']:.3f}"
    lines = [f"| confidence of {arm['title']} | reports | mean | right ({error}) |", "|---" * 4 + "|"]
    for one in arm["calibration"]:
        span = f"{one['low']:.1f} to {one['high']:.1f}"
        lines.append(f"| {span} | {one['count']} | {one['confidence']:.2f} | {100 * one['right']:.0f}% |")
    return "\n".join(lines)


def solved_by_arm(rows: Sequence[dict[str, Any]], names: Iterable[str]) -> dict[str, Rows]:
    """The rows of the arms whose packs a solver had."""
    solved: dict[str, Rows] = {name: {} for name in names}
    for row in rows:
        if row["scores"].get("solved") is not None:
            solved[row["arm"]][row["task_id"]] = row
    return {name: of_arm for name, of_arm in solved.items() if of_arm}


def solver_table(rows: Sequence[dict[str, Any]], labels: dict[str, str], baseline: str) -> str:
    """What the solver fixed with each arm's packs, and the paired test against the baseline's."""
    solved = solved_by_arm(rows, labels)
    lines = ["| packs of | bugs | fixed | 95% interval | adherence | solver tokens | better | worse | p |"]
    lines.append("|---" * 9 + "|")
    for name, of_arm in solved.items():
        share = wilson(sum(map(is_fixed, of_arm.values())), len(of_arm))
        common = sorted(of_arm.keys() & solved.get(baseline, {}).keys())
        test = mcnemar(*([is_fixed(solved[each][task]) for task in common] for each in (baseline, name)))
        against = f"{test.only_second} | {test.only_first} | {test.p_value:.2g}" if name != baseline else " | | "
        means = " | ".join(mean(of_arm, measure, list(of_arm)) for measure in ("adherence", "solver_tokens"))
        interval = f"{100 * (share.low or 0):.1f} to {100 * (share.high or 0):.1f}"
        fixed = f"{100 * (share.value or 0):.1f}% | {interval}"
        lines.append(f"| {labels[name]} | {len(of_arm)} | {fixed} | {means} | {against} |")
    return "\n".join(lines)


def is_fixed(row: dict[str, Any]) -> bool:
    """Whether the solver repaired the bug."""
    return row["scores"]["solved"] == 1.0


def is_right(row: dict[str, Any], measure: str = "function_acc@1") -> bool:
    """Whether a measure is 1: by default, whether the first location that was reported is in the right function."""
    return row["scores"].get(measure) == 1.0


if __name__ == "__main__":
    main()

"""`gumshoe grade`: grade patches with the official SWE-bench harness, or quickly with Gumshoe's own grader."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gumshoe.errors import ConfigError
from gumshoe.standard_streams import print_json

if TYPE_CHECKING:
    from gumshoe.eval.records import Prediction

EXAMPLES = """\
examples:
  gumshoe grade preds.jsonl                                    SWE-bench Lite, with the official harness
  gumshoe grade preds.jsonl --dataset rows.jsonl --workers 4   instances of a local file
  gumshoe grade preds.jsonl --ours --tasks tasks/synth         any task source, with Gumshoe's own grader

PREDS contains one JSON object per line: instance_id, model_name_or_path, model_patch. The harness needs Docker and the
extra `swebench`, and pulls missing images in its own way; --ours pulls them unless -p pull=never. Exit code 1: an
instance could not be graded. Outcome `withheld` (only --ours): the tests pass, but the patch could find out how it is
tested, so nothing is said about it.
"""
ORDER = ("resolved", "unresolved", "withheld", "empty", "error")


def configure_grade(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command."""
    parser.epilog = EXAMPLES
    parser.add_argument("predictions", type=Path, metavar="PREDS", help=".jsonl or .json file")
    parser.add_argument(
        "--dataset", default="SWE-bench/SWE-bench_Lite", metavar="ROWS", help="file or hub ID (default: %(default)s)"
    )
    parser.add_argument("--split", default="test", help="split of a hub dataset (default: %(default)s)")
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="folder for logs and report (default: PREDS, ending in .grade)"
    )
    parser.add_argument(
        "--run-id", metavar="NAME", help="default: derived from rows and patches, to avoid repeated runs"
    )
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="containers used in parallel")
    parser.add_argument("--timeout", type=int, default=1800, metavar="S", help="seconds for the tests of an instance")
    parser.add_argument("--ours", action="store_true", help="Gumshoe's grader instead of the official one")
    parser.add_argument("--tasks", metavar="SOURCE", help="with --ours: the tasks (default: those of --dataset)")
    parser.add_argument(
        "-p",
        dest="overrides",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="with --ours: set a key of the sandbox, such as memory_mb=4096",
    )
    parser.add_argument("--json", action="store_true", help="JSON instead of a table")


def run_grade(arguments: argparse.Namespace) -> int:
    """Grades and prints the report; 1 where an instance could not be graded. Raises GumshoeError."""
    from gumshoe.eval.swebench import read_predictions

    for name in ("workers", "timeout"):
        if getattr(arguments, name) < 1:
            raise ConfigError(f"--{name} must be at least 1")
    if arguments.tasks is not None and not arguments.ours:
        raise ConfigError("--tasks goes with --ours: the official harness reads --dataset")
    if arguments.overrides and not arguments.ours:
        raise ConfigError("-p goes with --ours: the official harness makes its containers itself")
    predictions = read_predictions(arguments.predictions)
    if arguments.ours:
        return _ours(arguments, predictions)
    return _official(arguments, predictions)


def _official(arguments: argparse.Namespace, predictions: Sequence[Prediction]) -> int:
    from gumshoe.env.tasks.rows import read_rows
    from gumshoe.eval.swebench import run_harness

    report = run_harness(
        _wanted(read_rows(arguments.dataset, arguments.split), predictions),
        predictions,
        arguments.out or arguments.predictions.with_suffix(".grade"),
        run_id=arguments.run_id,
        workers=arguments.workers,
        timeout_s=arguments.timeout,
        on_line=lambda line: print(line, file=sys.stderr),
    )
    facts = {"run_id": report.run_id, "report": str(report.path), "logs": str(report.logs)}
    if report.completed:
        facts["completed"] = f"{len(report.completed)} classic rows; rows.jsonl beside the report says how"
    _show(report.outcomes, facts, as_json=arguments.json)
    return 1 if "error" in report.outcomes.values() else 0


def _wanted(rows: Sequence[Mapping[str, Any]], predictions: Sequence[Prediction]) -> list[Mapping[str, Any]]:
    """The rows that have predictions: the others need not be fit for the harness."""
    answered = {prediction.instance_id for prediction in predictions}
    return [row for row in rows if isinstance(name := row.get("instance_id"), str) and name in answered]


def _ours(arguments: argparse.Namespace, predictions: Sequence[Prediction]) -> int:
    from gumshoe.config import apply_overrides, validate
    from gumshoe.env.config import SandboxConfig
    from gumshoe.env.tasks import load_tasks
    from gumshoe.env.verifier import grade_all

    config = validate(SandboxConfig, apply_overrides({}, arguments.overrides), origin="the sandbox of -p")
    patches = {prediction.instance_id: prediction.model_patch for prediction in predictions}
    if arguments.tasks is None:
        tasks = load_tasks("swebench", ids=patches.keys(), path=arguments.dataset, split=arguments.split)
    else:
        tasks = load_tasks(arguments.tasks, ids=patches.keys())
    work = [(task, oracle, patches[task.id]) for task, oracle in tasks]
    grades = list(grade_all(work, config, arguments.workers))
    facts = {grade.task_id: grade.explanation for grade in grades if grade.explanation}
    _show({grade.task_id: grade.outcome for grade in grades}, facts, as_json=arguments.json)
    return 1 if any(grade.outcome == "error" for grade in grades) else 0


def _show(outcomes: Mapping[str, str], facts: Mapping[str, str], *, as_json: bool) -> None:
    if as_json:
        print_json({"outcomes": outcomes, **facts})
        return
    from rich.table import Column, Table

    from gumshoe.console import Console

    table = Table(Column("instance", overflow="fold"), "outcome")
    for instance, outcome in sorted(outcomes.items(), key=lambda item: (ORDER.index(item[1]), item[0])):
        table.add_row(instance, outcome)
    console = Console()
    console.print(table)
    counts = {outcome: list(outcomes.values()).count(outcome) for outcome in ORDER}
    console.print(", ".join(f"{count} {outcome}" for outcome, count in counts.items()) + f" of {len(outcomes)}")
    for name, fact in facts.items():
        console.print(f"{name}: {fact}", highlight=False, soft_wrap=True)

"""Predictions for the official SWE-bench harness, and its verdicts on them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gumshoe.env.export.harness_rows import harness_rows
from gumshoe.env.tasks.rows import read_rows
from gumshoe.errors import ConfigError, GumshoeError, TaskError
from gumshoe.eval.config import EvalConfig
from gumshoe.eval.records import Result
from gumshoe.eval.swebench import HarnessReport, Prediction, check_tools, run_harness, write_predictions

__all__ = [
    "OfficialGrades",
    "check_installed",
    "check_rows",
    "grade_officially",
    "with_official",
    "write_all_predictions",
]

RESOLVED = {"resolved": 1.0, "unresolved": 0.0, "empty": 0.0, "error": 0.0}
"""What does not apply, or takes too long, is not resolved, as on the leaderboard; what failed for a reason outside the
patch has no score."""


@dataclass(frozen=True)
class OfficialGrades:
    """The harness's reports by arm; `failure` says in one line why there are no more."""

    reports: Mapping[str, HarnessReport]
    failure: str | None = None


def write_all_predictions(
    by_arm: Mapping[str, Sequence[Result]], main: str | None, out: Path
) -> dict[str, list[Prediction]]:
    """Writes preds/ARM.jsonl for each arm that has changed code, and preds.jsonl for the one that counts most.

    The first sample of each task is predicted, even if it changed nothing.
    """
    made = {
        arm: [_prediction(arm, result) for result in results if result.sample == 0 and "solved" in result.scores]
        for arm, results in by_arm.items()
    }
    made = {arm: predictions for arm, predictions in made.items() if predictions}
    for arm, predictions in made.items():
        write_predictions(out / "preds" / f"{arm}.jsonl", predictions)
    if main in made:
        write_predictions(out / "preds.jsonl", made[main])
    return made


def _prediction(arm: str, result: Result) -> Prediction:
    return Prediction(instance_id=result.task_id, model_name_or_path=f"gumshoe-{arm}", model_patch=result.patch)


def check_installed() -> None:
    """Raises ConfigError where the harness is not installed, SandboxError where no Docker daemon answers."""
    try:
        check_tools()
    except ModuleNotFoundError:
        raise ConfigError("the official harness is not installed: pip install 'gumshoe-debug[swebench]'") from None


def check_rows(config: EvalConfig, ids: Collection[str]) -> list[dict[str, Any]]:
    """The rows of these tasks as the harness wants them.

    Raises:
        ConfigError: the tasks are not from SWE-bench.
        TaskError: the rows cannot be read, or, a line for each, some are missing or cannot be completed.
    """
    assert config.harness is not None
    name, _, path = config.tasks.source.partition(":")
    if name != "swebench":
        raise ConfigError(f"harness grades SWE-bench only, and the tasks come from {name}: leave it out")
    options = config.tasks.options
    source = config.harness.rows or path or options.get("path", "SWE-bench/SWE-bench_Lite")
    found = read_rows(str(source), str(options.get("split", "test")))
    rows = {name: row for row in found if isinstance(name := row.get("instance_id"), str)}
    missing = sorted(set(ids) - rows.keys())
    if missing:
        raise TaskError(
            "\n".join(f"task {name}: {source} has no row for it, which the harness needs" for name in missing)
        )
    return harness_rows(row for name, row in rows.items() if name in ids)


def grade_officially(
    config: EvalConfig,
    rows: Sequence[Mapping[str, Any]],
    predictions: Mapping[str, Sequence[Prediction]],
    say: Callable[[str], None],
) -> OfficialGrades:
    """The harness's report on each arm's predictions, up to the first arm on which it fails."""
    assert config.harness is not None
    reports: dict[str, HarnessReport] = {}
    for arm, of_arm in predictions.items():
        wanted = {prediction.instance_id for prediction in of_arm}
        say(f"official harness: {arm}, {sum(bool(one.model_patch) for one in of_arm)} patches")
        try:
            report = run_harness(
                [row for row in rows if row["instance_id"] in wanted],
                of_arm,
                Path(config.out) / "harness" / arm,
                workers=config.harness.workers,
                timeout_s=config.harness.timeout_s,
            )
        except (GumshoeError, OSError) as error:
            return OfficialGrades(reports, f"the official harness failed on arm {arm}: {' '.join(str(error).split())}")
        reports[arm] = report
        say(f"official harness: {arm}, {len(report.resolved)} of {len(of_arm)} resolved, {report.path}")
    return OfficialGrades(reports)


def with_official(
    by_arm: Mapping[str, Sequence[Result]], reports: Mapping[str, HarnessReport]
) -> dict[str, list[Result]]:
    """The results with the harness's verdict, on the first sample of each task."""
    return {
        arm: [
            result.model_copy(update={"scores": {**result.scores, "official": _score(reports[arm], result.task_id)}})
            if result.sample == 0 and arm in reports and result.task_id in reports[arm].outcomes
            else result
            for result in results
        ]
        for arm, results in by_arm.items()
    }


def _score(report: HarnessReport, task_id: str) -> float | None:
    return None if task_id in report.outside else RESOLVED[report.outcomes[task_id]]

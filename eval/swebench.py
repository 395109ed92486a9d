"""The official SWE-bench harness: runs it in a process of its own, reads its report, and scores an evaluation with it.

    `gumshoe eval`: predictions of each arm ──grade_officially──┐
                                                                run_harness ──> HarnessReport ──with_official──> scores
    `gumshoe grade`: a file ──read_predictions──────────────────┘

Nothing is fetched: the rows are written to a local file, and an image that the daemon has is used as it is. Everything
that the harness writes goes below one folder. It keeps a result for each run id and instance, so the run id is made
from the rows and the predictions: the same ones are not run again, and different ones never get an old result.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from pydantic import ValidationError

from gumshoe.env.harness_rows import COMPLETED, harness_rows
from gumshoe.env.tasks.rows import read_rows
from gumshoe.errors import ConfigError, DatasetError, GumshoeError, SandboxError, TaskError
from gumshoe.eval.config import EvalConfig
from gumshoe.eval.records import Prediction, Result
from gumshoe.storage import describe, read_json, read_jsonl, write_atomic, write_jsonl

OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
REPORT_VERSION = 2
CONTAINER_GONE = "No such container"
RESOLVED = {"resolved": 1.0, "unresolved": 0.0, "empty": 0.0, "error": 0.0}
"""What does not apply, or takes too long, is not resolved, as on the leaderboard; what failed for a reason outside the
patch has no score."""


@dataclass(frozen=True)
class HarnessReport:
    """What the harness found: `resolved`, `unresolved`, `empty` or `error` for each instance with a prediction.

    An error is a patch that does not apply, an image that is not there, or tests that take too long. `outside` names
    instances for whose outcome the harness blames the environment, `completed` rows of the classic schema that were
    completed here; the column `completed` of rows.jsonl says how. `path` is the harness's own report, `logs` has a
    folder for each instance.
    """

    path: Path
    logs: Path
    run_id: str
    outcomes: Mapping[str, str]
    outside: tuple[str, ...] = ()
    completed: tuple[str, ...] = ()


def run_harness(
    rows: Sequence[Mapping[str, Any]],
    predictions: Sequence[Prediction],
    folder: Path,
    *,
    run_id: str | None = None,
    workers: int = 1,
    timeout_s: int = 1800,
    on_line: Callable[[str], None] = lambda line: None,
) -> HarnessReport:
    """Grades predictions, at most one for each row, in containers, as the leaderboard does.

    The rows are in the classic schema or that of 5.x. Rows, predictions, logs and report are written to `folder`.
    Without `run_id`, the run is named after the rows and predictions. `timeout_s` is for the tests of an instance,
    `on_line` is called with each line that the harness prints.

    Raises:
        ConfigError: the extra `swebench` is not installed, or the run id cannot be a folder's name.
        SandboxError: no daemon answers, or the harness ended without a report.
        TaskError: a prediction is for no row, or a row lacks what the harness needs.
    """
    ready = harness_rows(rows)
    unknown = {prediction.instance_id for prediction in predictions} - {row["instance_id"] for row in ready}
    if unknown:
        raise TaskError(f"task {min(unknown)}: there is a prediction for it, but no row")
    run_id = run_id or _run_id(ready, predictions)
    if not run_id or "/" in run_id or run_id.startswith("."):
        raise ConfigError(f"run id {run_id!r} cannot be the name of a folder")
    check_tools()
    place = folder.resolve() / run_id
    place.mkdir(parents=True, exist_ok=True)
    write_atomic(place / "rows.jsonl", "".join(f"{json.dumps(row, default=str)}\n" for row in ready))
    write_jsonl(place / "preds.jsonl", predictions)
    run_evaluation(place, run_id, workers, timeout_s, on_line)
    completed = tuple(row["instance_id"] for row in ready if COMPLETED in row)
    return _read_report(place, run_id, predictions, completed)


def check_tools() -> None:
    """Raises ConfigError without the extra `swebench`, SandboxError where no daemon answers."""
    if importlib.util.find_spec("swebench") is None:
        raise ConfigError("the official harness is not installed: pip install 'gumshoe-debug[swebench]'")
    if shutil.which("docker") is None:
        raise SandboxError("the harness calls the program `docker`, which is not installed")
    from gumshoe.env.sandboxes.engine import connect

    with contextlib.closing(connect()):
        return


def _run_id(rows: Sequence[Mapping[str, Any]], predictions: Sequence[Prediction]) -> str:
    answered = {prediction.instance_id for prediction in predictions}
    facts = [json.dumps(row, sort_keys=True, default=str) for row in rows if row["instance_id"] in answered]
    facts += [prediction.model_dump_json() for prediction in predictions]
    return f"gumshoe-{hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:12]}"


def run_evaluation(place: Path, run_id: str, workers: int, timeout_s: int, on_line: Callable[[str], None]) -> None:
    """Runs the harness in `place`; what it prints is kept in harness.log. Raises SandboxError when it fails.

    Before its report, the harness lists all containers, which fails if anyone removes one meanwhile. It is then run
    once more, which is quick, as it keeps its verdicts.
    """
    argv = [sys.executable, "-m", "swebench.harness.run_evaluation", "--dataset_name", "rows.jsonl"]
    argv += ["--predictions_path", "preds.jsonl", "--run_id", run_id, "--max_workers", str(workers)]
    argv += ["--timeout", str(timeout_s), "--report_dir", "."]
    with (place / "harness.log").open("w", encoding="utf-8") as log:
        code, last = _run(argv, place, log, on_line)
        if code != 0 and CONTAINER_GONE in last:
            code, last = _run(argv, place, log, on_line)
    if code != 0:
        raise SandboxError(f"the harness ended with exit code {code}: {last} (see {log.name})")


def _run(argv: Sequence[str], place: Path, log: IO[str], on_line: Callable[[str], None]) -> tuple[int, str]:
    """The exit code of the harness, and the last line that it printed."""
    with subprocess.Popen(
        argv,
        cwd=place,
        env={**os.environ, **OFFLINE, "PYTHONUNBUFFERED": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None
        last = "it printed nothing"
        try:
            for line in process.stdout:
                log.write(line)
                if line.strip():
                    last = line.strip()
                    on_line(last)
        except BaseException:
            process.terminate()
            raise
    return process.returncode, last


def _read_report(
    place: Path, run_id: str, predictions: Sequence[Prediction], completed: tuple[str, ...]
) -> HarnessReport:
    model = predictions[0].model_name_or_path.replace("/", "__") if predictions else ""
    path = place / f"{model}.{run_id}.json"
    try:
        report: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SandboxError(f"the harness left no readable report: {error}") from None
    if report.get("schema_version") != REPORT_VERSION:
        raise SandboxError(
            f"{path} is of version {report.get('schema_version')}, not {REPORT_VERSION}: pin swebench 5.x"
        )
    columns = {"resolved": "resolved", "unresolved": "unresolved", "empty": "empty_patch", "error": "error"}
    outcomes = {name: outcome for outcome, column in columns.items() for name in report[f"{column}_ids"]}
    outside = tuple(report.get("infra_failure_ids", ()))
    return HarnessReport(path, place / "logs" / "run_evaluation" / run_id, run_id, outcomes, outside, completed)


def read_predictions(path: Path) -> list[Prediction]:
    """The predictions in a .jsonl file, or in a .json file with a list of them or a mapping of ids to them.

    Fields that the harness does not read are ignored. Raises a DatasetError that names the row.
    """
    rows = _rows(path)
    predictions = [_prediction(row, f"{path}: prediction {number}") for number, row in enumerate(rows, 1)]
    if not predictions:
        raise DatasetError(f"{path} holds no predictions")
    twice = [name for name, count in Counter(one.instance_id for one in predictions).items() if count > 1]
    if twice:
        raise DatasetError(f"{path} has two predictions for {twice[0]}: keep one")
    return predictions


def _rows(path: Path) -> list[Any]:
    if path.suffix not in {".json", ".jsonl"}:
        raise DatasetError(f"{path}: predictions are a .jsonl or .json file")
    if not path.exists():
        raise DatasetError(f"no file {path}: give the predictions to grade")
    if path.suffix == ".jsonl":
        return [row for _, row in read_jsonl(path)]
    rows = read_json(path)
    if isinstance(rows, dict):
        return list(rows.values())
    if not isinstance(rows, list):
        raise DatasetError(f"{path} must hold a list of predictions, or a mapping of instance ids to them")
    return rows


def _prediction(row: Any, where: str) -> Prediction:
    if not isinstance(row, dict):
        raise DatasetError(f"{where} is not a mapping of names to values")
    known = {name: row[name] for name in Prediction.model_fields if name in row}
    if known.get("model_patch", "") is None:
        known["model_patch"] = ""
    try:
        return Prediction.model_validate(known)
    except ValidationError as error:
        raise DatasetError(f"{where}: {describe(error)}") from None


@dataclass(frozen=True)
class OfficialGrades:
    """The harness's reports by arm; `failure` says in one line why there are no more."""

    reports: Mapping[str, HarnessReport]
    failure: str | None = None


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
        resolved = list(report.outcomes.values()).count("resolved")
        say(f"official harness: {arm}, {resolved} of {len(of_arm)} resolved, {report.path}")
    return OfficialGrades(reports)


def with_official(
    by_arm: Mapping[str, Sequence[Result]], reports: Mapping[str, HarnessReport]
) -> dict[str, list[Result]]:
    """The results with the harness's verdict, on the first sample of each task."""
    return {
        arm: [_graded(one, reports[arm]) if arm in reports else one for one in results]
        for arm, results in by_arm.items()
    }


def _graded(result: Result, report: HarnessReport) -> Result:
    if result.sample > 0 or result.task_id not in report.outcomes:
        return result
    score = None if result.task_id in report.outside else RESOLVED[report.outcomes[result.task_id]]
    return result.model_copy(update={"scores": {**result.scores, "official": score}})

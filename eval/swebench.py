"""Predictions as the official harness reads them; runs it in a process of its own and reads its report.

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
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from pydantic import Field, ValidationError

from gumshoe.env.tasks.harness_rows import COMPLETED, harness_rows
from gumshoe.errors import ConfigError, DatasetError, SandboxError, TaskError
from gumshoe.records import Record
from gumshoe.storage import describe, read_json, read_jsonl, write_atomic, write_jsonl

__all__ = ["HarnessReport", "Prediction", "check_tools", "read_predictions", "run_harness", "write_predictions"]

OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
REPORT_VERSION = 2


@dataclass(frozen=True)
class HarnessReport:
    """What the harness found. `path` is its own report, `logs` the folder with one folder per instance."""

    path: Path
    logs: Path
    run_id: str
    total: int
    resolved: tuple[str, ...]
    unresolved: tuple[str, ...]
    empty: tuple[str, ...]
    errors: tuple[str, ...]
    """Patches that do not apply, images that are not there, tests that take too long."""
    outside: tuple[str, ...] = ()
    """Those of the unresolved and of the errors that the harness blames on the environment."""
    completed: tuple[str, ...] = ()
    """Rows of the classic schema that were completed here; the column `completed` of rows.jsonl says how."""

    @property
    def outcomes(self) -> dict[str, str]:
        """`resolved`, `unresolved`, `empty` or `error` for each instance with a prediction."""
        groups = {
            "resolved": self.resolved,
            "unresolved": self.unresolved,
            "empty": self.empty,
            "error": self.errors,
        }
        return {instance: outcome for outcome, instances in groups.items() for instance in instances}


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
    """Grades predictions in containers, as the leaderboard does.

    Args:
        rows: the instances, in the classic schema or that of 5.x.
        predictions: at most one for each of them.
        folder: where rows, predictions, logs and report are written.
        run_id: name of the run; None makes one from the rows and predictions.
        workers: containers at a time.
        timeout_s: seconds that the tests of an instance may take.
        on_line: called with each line that the harness prints.

    Raises:
        ModuleNotFoundError: the extra `swebench` is not installed.
        ConfigError: the run id cannot be a folder's name.
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
    _write_rows(place / "rows.jsonl", ready)
    write_predictions(place / "preds.jsonl", predictions)
    _run(place, run_id, workers, timeout_s, on_line)
    completed = tuple(row["instance_id"] for row in ready if COMPLETED in row)
    return _read_report(place, run_id, predictions, completed)


def check_tools() -> None:
    """Raises ModuleNotFoundError without the extra `swebench`, SandboxError where no daemon answers."""
    if importlib.util.find_spec("swebench") is None:
        raise ModuleNotFoundError("No module named 'swebench'", name="swebench")
    if shutil.which("docker") is None:
        raise SandboxError("the harness calls the program `docker`, which is not installed")
    from gumshoe.env.sandboxes.containers.engine import connect

    with contextlib.closing(connect()):
        return


def _run_id(rows: Sequence[Mapping[str, Any]], predictions: Sequence[Prediction]) -> str:
    answered = {prediction.instance_id for prediction in predictions}
    facts = [json.dumps(row, sort_keys=True, default=str) for row in rows if row["instance_id"] in answered]
    facts += [prediction.model_dump_json() for prediction in predictions]
    return f"gumshoe-{hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:12]}"


def _write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    write_atomic(path, "".join(f"{json.dumps(row, default=str)}\n" for row in rows))


def _run(place: Path, run_id: str, workers: int, timeout_s: int, on_line: Callable[[str], None]) -> None:
    """Runs the harness in `place`; what it prints is kept in harness.log. Raises SandboxError when it fails."""
    options = {
        "--dataset_name": "rows.jsonl",
        "--predictions_path": "preds.jsonl",
        "--run_id": run_id,
        "--max_workers": str(workers),
        "--timeout": str(timeout_s),
        "--report_dir": ".",
    }
    argv = [
        sys.executable,
        "-m",
        "swebench.harness.run_evaluation",
        *(word for pair in options.items() for word in pair),
    ]
    environment = {**os.environ, **OFFLINE, "PYTHONUNBUFFERED": "1"}
    with (
        (place / "harness.log").open("w", encoding="utf-8") as log,
        subprocess.Popen(
            argv,
            cwd=place,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process,
    ):
        assert process.stdout is not None
        try:
            last = _follow(process.stdout, log, on_line)
        except BaseException:
            process.terminate()
            raise
    if process.returncode != 0:
        raise SandboxError(f"the harness ended with exit code {process.returncode}: {last} (see {log.name})")


def _follow(lines: IO[str], log: IO[str], on_line: Callable[[str], None]) -> str:
    """Copies what is printed and returns the last line that is not blank."""
    last = "it printed nothing"
    for line in lines:
        log.write(line)
        if line.strip():
            last = line.strip()
            on_line(last)
    return last


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
    return HarnessReport(
        path=path,
        logs=place / "logs" / "run_evaluation" / run_id,
        run_id=run_id,
        total=report["total_instances"],
        resolved=tuple(report["resolved_ids"]),
        unresolved=tuple(report["unresolved_ids"]),
        empty=tuple(report["empty_patch_ids"]),
        errors=tuple(report["error_ids"]),
        outside=tuple(report.get("infra_failure_ids", ())),
        completed=completed,
    )


class Prediction(Record):
    """One answer. An empty patch is one, too: the harness counts it but does not run it."""

    instance_id: str = Field(min_length=1)
    model_name_or_path: str = Field(min_length=1)
    model_patch: str = ""


def read_predictions(path: Path) -> list[Prediction]:
    """The predictions in a .jsonl file, or in a .json file with a list of them or a mapping of ids to them.

    Fields that the harness does not read are ignored. Raises a DatasetError that names the row.
    """
    rows = _rows(path)
    predictions = [_prediction(row, f"{path}: prediction {number}") for number, row in enumerate(rows, 1)]
    if not predictions:
        raise DatasetError(f"{path} holds no predictions")
    seen: set[str] = set()
    for prediction in predictions:
        if prediction.instance_id in seen:
            raise DatasetError(f"{path} has two predictions for {prediction.instance_id}: keep one")
        seen.add(prediction.instance_id)
    return predictions


def write_predictions(path: Path, predictions: Iterable[Prediction]) -> None:
    """Writes a .jsonl file atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_jsonl(path, predictions)


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

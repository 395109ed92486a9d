"""Predictions as the official harness reads them: an instance, who answers, the patch."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from gumshoe.errors import DatasetError
from gumshoe.records import Record
from gumshoe.storage import describe, read_json, read_jsonl, write_jsonl

__all__ = ["Prediction", "read_predictions", "write_predictions"]


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

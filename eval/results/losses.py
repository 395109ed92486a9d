"""The loss curve, from a training run's log: JSON lines with `step` and `loss` or `eval_loss`."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gumshoe.errors import DatasetError
from gumshoe.eval.config import EvalConfig
from gumshoe.eval.records import LossCurve
from gumshoe.storage import read_jsonl

__all__ = ["read_losses"]

KINDS = (("loss", "training"), ("eval_loss", "held out"))


def read_losses(config: EvalConfig) -> tuple[LossCurve, ...]:
    """The training and the held-out loss that the config's training log holds; none without a log.

    Rows without a step or a finite loss, which trainers also write, are left out. Raises DatasetError.
    """
    if config.training_log is None:
        return ()
    path = Path(config.fill(config.training_log))
    if not path.exists():
        raise DatasetError(f"there is no training log {path}: correct training_log, or set it to null")
    rows = [row for _, row in read_jsonl(path)]
    curves = [LossCurve(label=label, points=_points(rows, key)) for key, label in KINDS]
    return tuple(curve for curve in curves if curve.points)


def _points(rows: Iterable[Any], key: str) -> tuple[tuple[float, float], ...]:
    found: dict[float, float] = {}
    for row in rows:
        step, loss = (row.get("step"), row.get(key)) if isinstance(row, dict) else (None, None)
        if isinstance(step, (int, float)) and isinstance(loss, (int, float)) and math.isfinite(loss):
            found[float(step)] = float(loss)
    return tuple(sorted(found.items()))

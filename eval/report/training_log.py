"""The loss curve, from a training run's log: JSON lines with `step` and `loss` or `eval_loss`."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gumshoe.errors import DatasetError

__all__ = ["read_losses"]

KINDS = (("loss", "training", "train"), ("eval_loss", "held out", "held-out"))


def read_losses(path: Path) -> list[tuple[str, str, list[tuple[float, float]]]]:
    """(label, kind, points of (step, loss)) for training and for held-out loss. Raises DatasetError.

    Rows without a step or a finite loss, as trainers also write them, are left out.
    """
    try:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except FileNotFoundError:
        raise DatasetError(f"there is no training log {path}: correct training_log, or set it to null") from None
    except (OSError, ValueError) as error:
        raise DatasetError(f"the training log {path} cannot be read: {error}") from None
    return [(label, kind, _points(rows, key)) for key, label, kind in KINDS]


def _points(rows: Iterable[Any], key: str) -> list[tuple[float, float]]:
    found: dict[float, float] = {}
    for row in rows:
        step, loss = (row.get("step"), row.get(key)) if isinstance(row, dict) else (None, None)
        if isinstance(step, (int, float)) and isinstance(loss, (int, float)) and math.isfinite(loss):
            found[float(step)] = float(loss)
    return sorted(found.items())

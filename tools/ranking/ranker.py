"""How likely each function is to hold the bug, by its signals: a model fitted on bugs that people made and repaired.

It is a conditional logit model (D. McFadden, 1974: the culprit is one of the candidates), so a candidate's signals
count relative to those of the others. `python -m benchmarks.results.ranker fit` fits it and writes `ranker.json`, which
also says on what it was fitted and how well it did in cross-validation.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from gumshoe.tools.ranking.signals import Signals

__all__ = ["probabilities"]


@cache
def _model() -> dict[str, Any]:
    """The share of bugs that are in no candidate, `elsewhere`; by signal its `mean`, `deviation` and `weight`."""
    model: dict[str, Any] = json.loads(files("gumshoe.tools.ranking").joinpath("ranker.json").read_text("utf-8"))
    return model


def probabilities(found: Sequence[Signals]) -> list[float]:
    """The probability of each candidate. What they leave of 1 is that the bug is in none of them."""
    model = _model()
    utilities = [_utility(one, model["signals"]) for one in found]
    highest = max(utilities, default=0.0)
    weights = [math.exp(utility - highest) for utility in utilities]
    total = sum(weights)
    return [(1 - model["elsewhere"]) * weight / total for weight in weights]


def _utility(one: Signals, fitted: dict[str, Any]) -> float:
    return sum(of["weight"] * (getattr(one, name) - of["mean"]) / of["deviation"] for name, of in fitted.items())

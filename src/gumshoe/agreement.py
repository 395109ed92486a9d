"""What episodes, their evaluation and training must agree on: the turns that are shown, faults, and the reward.

A model is trained on the conversations that an agent with a limited context sees, and is measured by the same faults
that are masked in training. `collect` and `eval` import this module, and so does `train`, which imports neither.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from gumshoe.errors import ConfigError

KEEP_TURNS = 2
"""This many of the latest turns are shown whole, if there is room."""

STEP = re.compile(r"\A\[step \d+\] ")
"""How an observation begins: with the step that made it."""

INVALID_KINDS = frozenset({"unreadable_call", "unknown_tool", "bad_arguments"})
"""Kinds of failures that say the call itself was wrong, not that what it asked for was missing."""


def left_out(text: str) -> str:
    """What stands in place of an observation that is left out; the observation itself if that is no longer."""
    head = STEP.match(text)
    prefix = head[0] if head else ""
    short = f"{prefix}[left out: {len(text) - len(prefix)} characters]"
    return short if len(short) < len(text) else text


WEIGHTS: Mapping[str, float] = {"line_f1": 1.0, "grounding": 0.3, "format": 0.3, "cost": 0.1}
"""The weights of the scores where a config names none."""


def check_weights(weights: Mapping[str, float], scores: Collection[str]) -> None:
    """Raises ConfigError for a weight of a score that no episode has; `scores` are the names of those that one has."""
    unknown = sorted(weights.keys() - set(scores))
    if unknown:
        known = ", ".join(sorted(scores))
        raise ConfigError(f"weights: there is no score {unknown[0]!r}; the scores are {known}")


def weighted_sum(scores: Mapping[str, float | None], weights: Mapping[str, float]) -> float | None:
    """The reward of an episode with these scores, of which those with a weight count; None if one of them is not
    known.
    """
    total = 0.0
    for name, weight in weights.items():
        score = scores[name]
        if score is None:
            return None
        total += weight * score
    return total

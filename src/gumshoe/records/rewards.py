"""The reward of a live episode, which is the same in training and from a server of episodes."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from gumshoe.errors import ConfigError

__all__ = ["WEIGHTS", "check_weights", "weighted_sum"]

WEIGHTS: Mapping[str, float] = {"line_f1": 1.0, "grounding": 0.3, "format": 0.3, "cost": 0.1}
"""The weights of the scores where a config names none."""


def check_weights(weights: Mapping[str, float], scores: Collection[str]) -> None:
    """Refuses a weight for a score that no episode has.

    Args:
        weights: the weight of each score, by name.
        scores: the names of the scores of an episode.

    Raises:
        ConfigError: a weight names no score.
    """
    unknown = sorted(weights.keys() - set(scores))
    if unknown:
        known = ", ".join(sorted(scores))
        raise ConfigError(f"weights: there is no score {unknown[0]!r}; the scores are {known}")


def weighted_sum(scores: Mapping[str, float | None], weights: Mapping[str, float]) -> float | None:
    """The reward of an episode; None if a score that counts is not known.

    Args:
        scores: the scores of the episode, 0 to 1 each; those without a weight do not count.
        weights: the weight of each score that counts; each is one of `scores`.
    """
    total = 0.0
    for name, weight in weights.items():
        score = scores[name]
        if score is None:
            return None
        total += weight * score
    return total

"""Metrics that others add: scorers by the name an installed package announces, or by a path."""

from __future__ import annotations

from collections.abc import Iterable

from gumshoe.errors import ConfigError
from gumshoe.eval.scorers import make_scorers
from gumshoe.eval.scorers.sources import Sources
from gumshoe.plugins import METRICS, announced, load_named
from gumshoe.protocols import Scorer

__all__ = ["load_scorers"]


def load_scorers(names: Iterable[str]) -> list[Scorer]:
    """One scorer for each name.

    Args:
        names: announced in the entry-point group `gumshoe.metrics`, or paths `package.module:attribute`, of a scorer
            or of a class that makes one without arguments.

    Raises:
        ConfigError: a name is unknown or cannot be imported, is not a scorer, or its metric already exists.
    """
    own = {scorer.name for scorer in make_scorers(Sources((), {}))}
    scorers: dict[str, Scorer] = {}
    for name in names:
        scorer = _load(name)
        if scorer.name in own:
            raise ConfigError(f"metric {scorer.name!r} is one of Gumshoe's own: give {name!r} another name")
        if scorer.name in scorers:
            raise ConfigError(f"metric {scorer.name!r} is listed twice: list each metric once")
        scorers[scorer.name] = scorer
    return list(scorers.values())


def _load(name: str) -> Scorer:
    scorer = load_named(name, "metric", announced(METRICS))
    if not isinstance(getattr(scorer, "name", None), str) or not hasattr(scorer, "score"):
        raise ConfigError(f"{name!r} is not a metric: it needs a name and score(trajectory, oracle) -> Score")
    return scorer

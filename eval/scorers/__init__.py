"""The metrics of a finished trajectory, Gumshoe's own and those that others add. A value that could not be measured is
None, never 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gumshoe.errors import ConfigError
from gumshoe.eval.scorers import conduct, ranking
from gumshoe.eval.scorers.calibration import Brier, Confidence, Top1Hit
from gumshoe.eval.scorers.conduct import Conduct, Grounding, ValidCalls
from gumshoe.eval.scorers.localization import Level, Localization, Measure, ReciprocalRank
from gumshoe.eval.scorers.ranking import Acc, Ranked, Rankings
from gumshoe.eval.scorers.sources import Sources
from gumshoe.plugins import METRICS, announced, load_named
from gumshoe.protocols import Scorer

__all__ = ["load_scorers", "make_scorers"]

LOCALIZATION: tuple[tuple[Level, Measure], ...] = (
    *(("file", "recall"), ("file", "f1"), ("function", "recall"), ("function", "f1")),
    *(("line", "precision"), ("line", "recall"), ("line", "f1")),
)


def make_scorers(sources: Sources, given: Mapping[str, Ranked] | None = None) -> list[Scorer]:
    """Every scorer, for episodes on the tasks of `sources`; `given` as for `Rankings`."""
    rankings = Rankings(sources, given)
    return [
        ValidCalls(),
        *(Localization(level, measure, sources) for level, measure in LOCALIZATION),
        *(Acc(level, k, rankings) for level, k in ranking.ACC),
        ReciprocalRank(),
        Grounding(),
        Confidence(),
        Top1Hit(),
        Brier(),
        *(Conduct(name) for name in conduct.MEASURES),
    ]


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

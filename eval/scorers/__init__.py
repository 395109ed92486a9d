"""The metrics of a finished trajectory, one file per scorer. A value that could not be measured is None, never 0."""

from __future__ import annotations

from collections.abc import Mapping

from gumshoe.eval.scorers import conduct, ranking
from gumshoe.eval.scorers.calibration import Brier, Confidence, Top1Hit
from gumshoe.eval.scorers.conduct import Conduct
from gumshoe.eval.scorers.grounding import Grounding, Quoted
from gumshoe.eval.scorers.localization import Level, Localization, Measure, ReciprocalRank
from gumshoe.eval.scorers.ranking import Acc, Ranked, Rankings
from gumshoe.eval.scorers.sources import Sources
from gumshoe.eval.scorers.valid_calls import ValidCalls
from gumshoe.protocols import Scorer

__all__ = ["make_scorers"]

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
        Quoted(),
        Confidence(),
        Top1Hit(),
        Brier(),
        *(Conduct(name) for name in conduct.MEASURES),
    ]

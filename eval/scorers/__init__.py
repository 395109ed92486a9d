"""The metrics of a finished trajectory, one file per scorer. A value that could not be measured is None, never 0."""

from __future__ import annotations

from collections.abc import Mapping

from gumshoe.eval.scorers import budget, conduct, localization, ranking
from gumshoe.eval.scorers.budget import LineBudget, LinesNamed
from gumshoe.eval.scorers.calibration import Brier, Confidence, Top1Hit
from gumshoe.eval.scorers.conduct import Conduct, Timing
from gumshoe.eval.scorers.grounding import Grounding, Quoted
from gumshoe.eval.scorers.localization import FirstRank, Localization, ReciprocalRank
from gumshoe.eval.scorers.ranking import Acc, Edited, ListLength, Ranked, Rankings
from gumshoe.eval.scorers.sources import Sources
from gumshoe.eval.scorers.valid_calls import ValidCalls
from gumshoe.protocols import Scorer

__all__ = ["make_scorers"]


def make_scorers(sources: Sources, given: Mapping[str, Ranked] | None = None) -> list[Scorer]:
    """Every scorer, for episodes on the tasks of `sources`; `given` as for `Rankings`."""
    rankings = Rankings(sources, given)
    return [
        ValidCalls(),
        *(Localization(level, measure, sources) for level in localization.LEVELS for measure in localization.MEASURES),
        *(Acc(level, k, rankings) for level, k in ranking.ACC),
        *(Edited(level, measure, rankings) for level in ("module", "function") for measure in localization.MEASURES),
        *(ListLength(level, rankings) for level in ranking.LEVELS),
        *(LineBudget(measure, lines) for measure in budget.MEASURES for lines in budget.BUDGETS),
        LinesNamed(),
        ReciprocalRank(),
        FirstRank(),
        Grounding(),
        Quoted(),
        Confidence(),
        Top1Hit(),
        Brier(),
        *(Conduct(name) for name in conduct.MEASURES),
        Timing("early_report"),
        Timing("late_report"),
    ]

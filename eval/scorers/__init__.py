"""What is measured on a finished trajectory, one file a scorer. A value that could not be measured is None, never 0."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gumshoe.eval.scorers import conduct, localisation
from gumshoe.eval.scorers.calibration import Brier, Confidence, Top1Hit
from gumshoe.eval.scorers.conduct import Conduct, Timing
from gumshoe.eval.scorers.grounding import Grounding
from gumshoe.eval.scorers.localisation import FirstRank, Localisation, ReciprocalRank
from gumshoe.eval.scorers.sources import Sources
from gumshoe.eval.scorers.valid_calls import ValidCalls
from gumshoe.protocols import Scorer
from gumshoe.records import Task

__all__ = ["make_scorers"]


def make_scorers(tasks: Iterable[Task], fetched: Mapping[str, Mapping[str, str | None]] | None = None) -> list[Scorer]:
    """Every scorer, for episodes on `tasks`; `fetched` as for `Sources`."""
    sources = Sources(tasks, fetched)
    return [
        ValidCalls(),
        *(Localisation(level, measure, sources) for level in localisation.LEVELS for measure in localisation.MEASURES),
        ReciprocalRank(),
        FirstRank(),
        Grounding(),
        Confidence(),
        Top1Hit(),
        Brier(),
        *(Conduct(name) for name in conduct.MEASURES),
        Timing("early_report"),
        Timing("late_report"),
    ]

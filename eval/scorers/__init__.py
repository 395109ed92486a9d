"""The metrics of a finished episode. A value that could not be measured is None, never 0."""

from __future__ import annotations

from gumshoe.eval.scorers.conduct import conduct_of
from gumshoe.eval.scorers.localization import localization_of
from gumshoe.eval.scorers.ranking import Rankings
from gumshoe.records import Oracle, Trajectory

__all__ = ["own_scores"]


def own_scores(trajectory: Trajectory, oracle: Oracle, rankings: Rankings) -> dict[str, float | None]:
    """All of Gumshoe's own metrics of an episode, by name. Raises TaskError if the gold patch is not a patch."""
    return {
        **conduct_of(trajectory),
        **localization_of(trajectory, oracle, rankings.sources),
        **rankings.accuracy_of(trajectory, oracle),
    }

"""From a finished episode to its result."""

from __future__ import annotations

from collections.abc import Iterable

from gumshoe.errors import ConfigError
from gumshoe.eval.records import ALL, Result
from gumshoe.eval.scorers.conduct import tool_counts
from gumshoe.protocols import Scorer
from gumshoe.records import Oracle, Score, Trajectory

__all__ = ["score_trajectory"]


def score_trajectory(
    arm: str,
    trajectory: Trajectory,
    oracle: Oracle,
    scorers: Iterable[Scorer],
    *,
    sample: int = 0,
    replayed: float | None = None,
) -> Result:
    """Runs every scorer on a finished episode. Scores that came with the trajectory are kept beside them.

    `replayed` is the share of its findings that were seen again, None where it was not replayed.

    Raises:
        ConfigError: a metric returns something other than a Score.
    """
    scores = {score.name: score.value for score in trajectory.scores}
    scores |= {scorer.name: _value(scorer, trajectory, oracle) for scorer in scorers}
    scores["replayed"] = replayed
    return Result(
        arm=arm,
        task_id=trajectory.task.id,
        sample=sample,
        split=trajectory.task.tags.get("split", ALL),
        trajectory=trajectory.id,
        stop=trajectory.stop,
        scores=scores,
        tools=tool_counts(trajectory),
        patch=trajectory.patch,
        tags=trajectory.task.tags,
    )


def _value(scorer: Scorer, trajectory: Trajectory, oracle: Oracle) -> float | None:
    """What a scorer says. Whatever else it raises gets a note that names it and the episode."""
    try:
        score: object = scorer.score(trajectory, oracle)
    except Exception as error:
        error.add_note(f"in the metric {scorer.name}, on episode {trajectory.id} of task {trajectory.task.id}")
        raise
    if not isinstance(score, Score):
        raise ConfigError(f"metric {scorer.name!r} must return a Score, not {type(score).__name__}")
    return score.value

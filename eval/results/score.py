"""From a finished episode to its result."""

from __future__ import annotations

from collections.abc import Iterable

from gumshoe.eval.results.records import ALL, Result
from gumshoe.eval.scorers.conduct import tool_counts
from gumshoe.protocols import Scorer
from gumshoe.records import Oracle, Trajectory

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
    """
    scores = {score.name: score.value for score in trajectory.scores}
    scores |= {scorer.name: scorer.score(trajectory, oracle).value for scorer in scorers}
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

"""Whether a policy is right as often as it says it is."""

from __future__ import annotations

from gumshoe.env.tasks import gold_lines
from gumshoe.eval.scorers.localisation import first_right_rank
from gumshoe.protocols import Sandbox
from gumshoe.records import Oracle, Score, Trajectory

__all__ = ["Brier", "stated_confidence"]


def stated_confidence(trajectory: Trajectory) -> float | None:
    """The confidence of the turn that handed the pack over; None where nothing was handed over or stated."""
    if trajectory.context_pack is None or not trajectory.steps:
        return None
    return trajectory.steps[-1].confidence


class Brier:
    """The squared difference between the confidence stated with the report and whether its first location is right.

    0 is best; always saying 0.5 gives 0.25. None where nothing was reported or no confidence was stated.
    """

    name = "brier"

    def score(self, trajectory: Trajectory, oracle: Oracle, sandbox: Sandbox | None = None) -> Score:
        """Reads the trajectory's last turn, its pack and the gold patch."""
        confidence = stated_confidence(trajectory)
        gold = {path: lines for path, lines in gold_lines(oracle.gold_patch).items() if lines}
        if confidence is None or trajectory.context_pack is None or not gold:
            return Score(name=self.name, value=None, explanation="no confidence was stated with a report")
        right = first_right_rank(trajectory.context_pack.locations, gold) == 1
        return Score(name=self.name, value=(confidence - right) ** 2, explanation=f"said {confidence:g}, {right=}")

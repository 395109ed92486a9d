"""Whether what a pack claims was seen."""

from __future__ import annotations

from gumshoe.collect.grounding import grounded_share, observation_texts
from gumshoe.records import Oracle, Score, Trajectory

__all__ = ["Grounding"]


class Grounding:
    """The share of findings whose quote stands in the observation of the step that they cite.

    None where there is no pack, or a pack without findings: nothing was claimed.
    """

    name = "grounding"

    def score(self, trajectory: Trajectory, oracle: Oracle) -> Score:
        """Reads the trajectory alone."""
        pack = trajectory.context_pack
        if pack is None or not pack.findings:
            return Score(name=self.name, value=None, explanation="nothing was claimed")
        share = grounded_share(pack, observation_texts(trajectory.steps))
        return Score(name=self.name, value=share, explanation=f"{len(pack.findings)} findings")

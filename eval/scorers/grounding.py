"""Whether what a pack claims was seen, and whether it holds."""

from __future__ import annotations

from gumshoe.collect.packs import grounded_share, observation_texts, quoted_share
from gumshoe.records import Oracle, Score, Trajectory

__all__ = ["Grounding", "Quoted"]


class Grounding:
    """The share of findings whose probe was confirmed and tells failing tests from passing ones.

    None where there is no pack, a pack without findings, or one whose findings were never checked.
    """

    name = "grounding"

    def score(self, trajectory: Trajectory, oracle: Oracle) -> Score:
        """Reads the trajectory alone."""
        pack = trajectory.context_pack
        share = None if pack is None else grounded_share(pack)
        if pack is None or share is None:
            return Score(name=self.name, value=None, explanation="nothing was claimed, or it was never checked")
        return Score(name=self.name, value=share, explanation=f"{len(pack.findings)} findings")


class Quoted:
    """The share of findings whose quote appears in the observation of the step that they cite.

    None where there is no pack, or a pack without findings: nothing was claimed.
    """

    name = "quoted"

    def score(self, trajectory: Trajectory, oracle: Oracle) -> Score:
        """Reads the trajectory alone."""
        pack = trajectory.context_pack
        share = None if pack is None else quoted_share(pack, observation_texts(trajectory.steps))
        if pack is None or share is None:
            return Score(name=self.name, value=None, explanation="nothing was claimed")
        return Score(name=self.name, value=share, explanation=f"{len(pack.findings)} findings")

"""`submit`: the end of an episode."""

from __future__ import annotations

from gumshoe.protocols import Workspace
from gumshoe.records import Decision, Observation
from gumshoe.tools.base import BaseTool

__all__ = ["Submit"]


class Submit(BaseTool):
    """Says that the agent is done. The environment ends the episode and judges it."""

    name = "submit"
    decision = Decision.SUBMIT

    def run(self, workspace: Workspace) -> Observation:
        """Hand in the repaired code. Ends the episode."""
        workspace.patch()  # One that is too large is refused while the agent can still do something about it.
        return self.observe("submitted", {"submitted": True, "edited": sorted({e.path for e in workspace.edits})})

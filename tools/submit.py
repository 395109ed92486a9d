"""`submit`: the end of an episode."""

from __future__ import annotations

from pydantic import JsonValue

from gumshoe.protocols import Workspace
from gumshoe.records import Decision, Observation
from gumshoe.tools.base import ConfirmTwice
from gumshoe.tools.eval import as_data, describe
from gumshoe.tools.reproductions import run_reproduction

__all__ = ["STILL_FAILS", "Submit"]

STILL_FAILS = "still_fails"
"""The kind of failure of a patch that is sent back."""


class Submit(ConfirmTwice):
    """Says that the agent is done. The environment ends the episode and judges it.

    Where the agent has reproduced an issue, that test is run first, and a patch with which it fails is sent back once.
    """

    name = "submit"
    decision = Decision.SUBMIT

    def run(self, workspace: Workspace) -> Observation:
        """Hand in the repaired code. Ends the episode."""
        workspace.patch()  # One that is too large is refused while the agent can still do something about it.
        edited: list[JsonValue] = [*sorted({edit.path for edit in workspace.edits})]
        data: dict[str, JsonValue] = {"submitted": True, "edited": edited}
        if workspace.reproduction is None:
            return self.observe("submitted", data)
        run = run_reproduction(workspace)
        self.events.on_eval(run, workspace)
        if not run.passed:
            again = "Repair the code or the test, or submit again to hand it in unchanged."
            self.send_back_once(STILL_FAILS, f"your test does not pass yet: {describe(run)}\n{again}")
        passes = "passes" if run.passed else "does not pass"
        return self.observe(f"submitted; your test {passes}", {**data, "reproduction": as_data(run)})

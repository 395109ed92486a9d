"""How many of the calls that a policy made could be carried out."""

from __future__ import annotations

from gumshoe.records import Oracle, Score, Step, Trajectory

__all__ = ["INVALID_KINDS", "ValidCalls"]

INVALID_KINDS = frozenset({"unreadable_call", "unknown_tool", "bad_arguments"})
"""Failure kinds that say the call itself was wrong, not that what it asked for was missing."""


class ValidCalls:
    """The share of turns whose calls all named a known tool with arguments that fit its schema.

    A turn without a call is an invalid one: the agent had to act and did not. Turns, not calls, are counted, so that
    a policy cannot raise its share by calling many tools at once. None where there was no turn.
    """

    name = "valid_calls"

    def score(self, trajectory: Trajectory, oracle: Oracle) -> Score:
        """Reads the trajectory alone."""
        turns = len(trajectory.steps)
        if not turns:
            return Score(name=self.name, value=None, explanation="no turn was taken")
        valid = sum(is_valid(step) for step in trajectory.steps)
        return Score(name=self.name, value=valid / turns, explanation=f"{valid} of {turns} turns")


def is_valid(step: Step) -> bool:
    """Whether all that a turn asked for could be carried out, and it asked for something."""
    if not step.tool_calls or any(call.parse_error is not None for call in step.tool_calls):
        return False
    failures = (observation.failure for observation in step.observations)
    return not any(failure is not None and failure.kind in INVALID_KINDS for failure in failures)

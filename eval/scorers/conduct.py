"""How a policy behaved: what it used, whether its calls were valid, and whether what it reported was seen and holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from gumshoe.collect.packs import grounded_share
from gumshoe.records import Oracle, Score, Step, Trajectory

__all__ = [
    "INVALID_KINDS",
    "MEASURES",
    "Conduct",
    "Grounding",
    "ValidCalls",
    "is_valid",
    "seconds_of",
    "tokens_of",
    "tool_counts",
]

INVALID_KINDS = frozenset({"unreadable_call", "unknown_tool", "bad_arguments"})
"""Failure kinds that say the call itself was wrong, not that what it asked for was missing."""


def _steps(trajectory: Trajectory) -> float:
    return len(trajectory.steps)


def tokens_of(trajectory: Trajectory) -> int | None:
    """Prompt and completion together; None for a policy that uses no tokens."""
    usage = trajectory.usage
    return (usage.prompt_tokens + usage.completion_tokens) or None


def _cost(trajectory: Trajectory) -> float | None:
    """Dollars; None where no price is known."""
    return trajectory.usage.cost_usd


def seconds_of(trajectory: Trajectory) -> float | None:
    """From the beginning of the episode to the end of its last turn."""
    last = trajectory.steps[-1] if trajectory.steps else None
    return None if last is None else last.started_at + last.duration_s


def _reported(trajectory: Trajectory) -> float:
    return float(trajectory.context_pack is not None)


def _keys(trajectory: Trajectory) -> list[str]:
    return [call.asks for step in trajectory.steps for call in step.tool_calls if call.parse_error is None]


def _repeats(trajectory: Trajectory) -> float | None:
    """The share of calls that ask for what an earlier call has already asked for."""
    keys = _keys(trajectory)
    return 1 - len(set(keys)) / len(keys) if keys else None


def _debugged(trajectory: Trajectory) -> float:
    return float(any(call.name == "pdb" for step in trajectory.steps for call in step.tool_calls))


def tool_counts(trajectory: Trajectory) -> dict[str, int]:
    """How often each tool was called, by name; calls that could not be read are left out."""
    return dict(Counter(call.name for step in trajectory.steps for call in step.tool_calls if call.parse_error is None))


MEASURES: dict[str, Callable[[Trajectory], float | None]] = {
    "reported": _reported,
    "steps": _steps,
    "tokens": tokens_of,
    "cost": _cost,
    "seconds": seconds_of,
    "repeats": _repeats,
    "debugged": _debugged,
}


class Conduct:
    """One number about how the episode went: a name from `MEASURES`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._measure = MEASURES[name]

    def score(self, trajectory: Trajectory, oracle: Oracle) -> Score:
        """Reads the trajectory alone."""
        return Score(name=self.name, value=self._measure(trajectory))


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

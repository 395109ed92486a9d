"""How a policy went about it: what it took, and whether it handed anything over."""

from __future__ import annotations

from collections.abc import Callable

from gumshoe.protocols import Sandbox, call_key
from gumshoe.records import Oracle, Score, Trajectory

__all__ = ["MEASURES", "Conduct"]


def _steps(trajectory: Trajectory) -> float:
    return len(trajectory.steps)


def _tokens(trajectory: Trajectory) -> float | None:
    """Prompt and completion together; None for a policy that uses no tokens."""
    usage = trajectory.usage
    return (usage.prompt_tokens + usage.completion_tokens) or None


def _seconds(trajectory: Trajectory) -> float | None:
    """From the beginning of the episode to the end of its last turn."""
    last = trajectory.steps[-1] if trajectory.steps else None
    return None if last is None else last.started_at + last.duration_s


def _reported(trajectory: Trajectory) -> float:
    return float(trajectory.context_pack is not None)


def _repeats(trajectory: Trajectory) -> float | None:
    """The share of calls that ask for what an earlier one has asked for already."""
    keys = [call_key(call) for step in trajectory.steps for call in step.tool_calls if call.parse_error is None]
    return 1 - len(set(keys)) / len(keys) if keys else None


def _debugged(trajectory: Trajectory) -> float:
    return float(any(call.name == "pdb" for step in trajectory.steps for call in step.tool_calls))


MEASURES: dict[str, Callable[[Trajectory], float | None]] = {
    "reported": _reported,
    "steps": _steps,
    "tokens": _tokens,
    "seconds": _seconds,
    "repeats": _repeats,
    "debugged": _debugged,
}


class Conduct:
    """One number about the episode's course: a name from `MEASURES`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._measure = MEASURES[name]

    def score(self, trajectory: Trajectory, oracle: Oracle, sandbox: Sandbox | None = None) -> Score:
        """Reads the trajectory alone."""
        return Score(name=self.name, value=self._measure(trajectory))

"""How a policy behaved: what it used, which tools it called, and whether it reported."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from gumshoe.records import Oracle, Score, Trajectory

__all__ = ["MEASURES", "Conduct", "tool_counts"]


def _steps(trajectory: Trajectory) -> float:
    return len(trajectory.steps)


def _tokens(trajectory: Trajectory) -> float | None:
    """Prompt and completion together; None for a policy that uses no tokens."""
    usage = trajectory.usage
    return (usage.prompt_tokens + usage.completion_tokens) or None


def _cost(trajectory: Trajectory) -> float | None:
    """Dollars; None where no price is known."""
    return trajectory.usage.cost_usd


def _seconds(trajectory: Trajectory) -> float | None:
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
    "tokens": _tokens,
    "cost": _cost,
    "seconds": _seconds,
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

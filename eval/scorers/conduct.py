"""How a policy behaved: what it used, which tools it called, and whether and when it reported."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby

from gumshoe.collect.evidence import seen_code
from gumshoe.collect.tool_output import outputs_of_steps
from gumshoe.env.diff import gold_lines
from gumshoe.eval.scorers.localization import clean_path
from gumshoe.records import Oracle, Score, Step, Trajectory

__all__ = ["LATE_STEPS", "LOOP", "MEASURES", "Conduct", "Timing", "tool_counts"]

LOOP = 3
"""The same call this many times in a row is a loop."""
LATE_STEPS = 5
"""A report is late when the cause has been on screen for more than this many steps."""
PROGRAM_TOOLS = ("reproduce", "eval", "pdb", "bash", "suspects", "trace", "whatif", "vary", "probe")


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


def _looped(trajectory: Trajectory) -> float:
    """Whether the same thing was asked for `LOOP` times in a row."""
    return float(any(len(list(run)) >= LOOP for _, run in groupby(_keys(trajectory))))


def _debugged(trajectory: Trajectory) -> float:
    return float(_first_debugger(trajectory) is not None)


def _first_debugger(trajectory: Trajectory) -> float | None:
    """The turn, from 1, that first called the debugger; None where none did."""
    turns = (step.index + 1 for step in trajectory.steps if any(call.name == "pdb" for call in step.tool_calls))
    return next(turns, None)


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
    "looped": _looped,
    "debugged": _debugged,
    "first_debugger": _first_debugger,
}


class Conduct:
    """One number about how the episode went: a name from `MEASURES`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._measure = MEASURES[name]

    def score(self, trajectory: Trajectory, oracle: Oracle) -> Score:
        """Reads the trajectory alone."""
        return Score(name=self.name, value=self._measure(trajectory))


class Timing:
    """Whether something was handed over too `early` or too `late`.

    `early_report`: the report was handed over before its first place was on screen, or before anything was run. None if
    nothing was handed over.

    `late_report`: the cause was on screen for more than `LATE_STEPS` turns before something was handed over, or the
    episode ended without a report though the cause had been seen. None where the cause was never seen.
    """

    def __init__(self, name: str) -> None:
        if name not in ("early_report", "late_report"):
            raise ValueError(f"no timing {name!r}")
        self.name = name

    def score(self, trajectory: Trajectory, oracle: Oracle) -> Score:
        """Reads the trajectory and the gold patch."""
        value = _early(trajectory) if self.name == "early_report" else _late(trajectory, oracle)
        return Score(name=self.name, value=value)


def _early(trajectory: Trajectory) -> float | None:
    pack = trajectory.context_pack
    if pack is None:
        return None
    steps = trajectory.steps
    ran = any(call.name in PROGRAM_TOOLS for step in steps for call in step.tool_calls)
    if not pack.locations:
        return float(not ran)
    path = clean_path(pack.locations[0].path)
    shown = any(path in observation.text for step in steps for observation in step.observations)
    return float(not (ran and shown))


def _late(trajectory: Trajectory, oracle: Oracle) -> float | None:
    first = _first_seen(trajectory.steps, gold_lines(oracle.gold_patch))
    if first is None:
        return None
    last = trajectory.steps[-1].index
    return float(trajectory.context_pack is None or last - first > LATE_STEPS)


def _first_seen(steps: Sequence[Step], gold: Mapping[str, set[int]]) -> int | None:
    """The index of the first step that showed a line of the cause."""
    for step in steps:
        code = seen_code(outputs_of_steps([step]))
        if any(lines & code.get(path, {}).keys() for path, lines in gold.items()):
            return step.index
    return None

"""How a policy behaved: what it used, whether its calls were valid, and whether what it reported holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gumshoe.collect.packs import grounded_share
from gumshoe.records import Step, Trajectory
from gumshoe.records.turns import INVALID_KINDS

__all__ = ["conduct_of", "seconds_of", "stated_confidence", "tokens_of", "tool_counts", "valid_share"]


def conduct_of(trajectory: Trajectory) -> dict[str, float | None]:
    """The metrics that need no gold patch: shares are 0 to 1, `cost` is in dollars, `seconds` in seconds.

    `repeats` is the share of calls that ask for what an earlier call has already asked for. `grounding` is the share of
    findings whose probe was confirmed and tells failing tests from passing ones: None where there is no pack, a pack
    without findings, or one whose findings were never checked.
    """
    steps, pack = trajectory.steps, trajectory.context_pack
    calls = [call for step in steps for call in step.tool_calls]
    asked = [call.asks for call in calls if call.parse_error is None]
    return {
        "valid_calls": valid_share(steps),
        "reported": float(pack is not None),
        "grounding": None if pack is None else grounded_share(pack),
        "confidence": stated_confidence(trajectory),
        "steps": len(steps),
        "tokens": tokens_of(trajectory),
        "cost": trajectory.usage.cost_usd,
        "seconds": seconds_of(trajectory),
        "repeats": 1 - len(set(asked)) / len(asked) if asked else None,
        "debugged": float(any(call.name == "pdb" for call in calls)),
    }


def valid_share(steps: Sequence[Step]) -> float | None:
    """The share of turns whose calls all named a known tool with arguments that fit its schema; None without a turn.

    A turn without a call is an invalid one: the agent had to act and did not. Turns, not calls, are counted, so that
    a policy cannot raise its share by calling many tools at once.
    """
    return sum(map(_is_valid, steps)) / len(steps) if steps else None


def _is_valid(step: Step) -> bool:
    """Whether all that a turn asked for could be carried out, and it asked for something."""
    if not step.tool_calls or any(call.parse_error is not None for call in step.tool_calls):
        return False
    failures = (observation.failure for observation in step.observations)
    return not any(failure is not None and failure.kind in INVALID_KINDS for failure in failures)


def stated_confidence(trajectory: Trajectory) -> float | None:
    """The confidence of the turn that handed the pack over; None where nothing was handed over or stated."""
    if trajectory.context_pack is None or not trajectory.steps:
        return None
    return trajectory.steps[-1].confidence


def tokens_of(trajectory: Trajectory) -> int | None:
    """Prompt and completion together; None for a policy that uses no tokens."""
    usage = trajectory.usage
    return usage.tokens or None


def seconds_of(trajectory: Trajectory) -> float | None:
    """From the beginning of the episode to the end of its last turn."""
    last = trajectory.steps[-1] if trajectory.steps else None
    return None if last is None else last.started_at + last.duration_s


def tool_counts(trajectory: Trajectory) -> dict[str, int]:
    """How often each tool was called, by name; calls that could not be read are left out."""
    return dict(Counter(call.name for step in trajectory.steps for call in step.tool_calls if call.parse_error is None))

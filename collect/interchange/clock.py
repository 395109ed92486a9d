"""When an episode happened."""

from __future__ import annotations

import datetime

from gumshoe.records import Trajectory

__all__ = ["start_of"]


def start_of(trajectory: Trajectory) -> datetime.datetime | None:
    """About when the episode began, estimated from when it was recorded; None if that is not known."""
    try:
        end = datetime.datetime.fromisoformat(trajectory.provenance.created_at)
    except ValueError:
        return None
    last = max((step.started_at + step.duration_s for step in trajectory.steps), default=0.0)
    try:
        return end - datetime.timedelta(seconds=last)
    except OverflowError:
        return None

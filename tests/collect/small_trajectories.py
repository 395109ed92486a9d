"""Trajectories made by hand."""

from __future__ import annotations

from typing import Any

from gumshoe.records import PolicyInfo, Provenance, StopReason, TaskRef, Trajectory

__all__ = ["trajectory"]


def trajectory(name: str = "t#0.1", **changes: Any) -> Trajectory:
    """A trajectory without turns. Anything may be given, its `id` included."""
    data: dict[str, Any] = {
        "id": name,
        "task": TaskRef(id="t", hash="h", source="synth", regime="debug", tags={"project": "p"}),
        "policy": PolicyInfo(kind="scripted", agent="debug"),
        "tools": (),
        "messages": (),
        "steps": (),
        "stop": StopReason.STEP_LIMIT,
        "provenance": Provenance(gumshoe="0", python="3", sandbox="local"),
    }
    return Trajectory(**{**data, **changes})

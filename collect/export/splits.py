"""Which split a row belongs to: by repository, never by row."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection

from gumshoe.collect.export.rows import project_of
from gumshoe.records import Trajectory

__all__ = ["TEST", "TRAIN", "held_out_projects", "is_held_out_bug", "split_of"]

TRAIN, TEST = "train", "test"


def held_out_projects(projects: Collection[str], share: float) -> frozenset[str]:
    """The projects of the test split: the `share` of them whose names hash lowest.

    At least one where there are several, and never all. The choice depends on the names alone.
    """
    if share <= 0 or len(projects) < 2:
        return frozenset()
    count = min(len(projects) - 1, max(1, math.floor(len(projects) * share + 0.5)))
    return frozenset(sorted(projects, key=lambda name: hashlib.sha256(name.encode()).hexdigest())[:count])


def split_of(trajectory: Trajectory, held_out: Collection[str]) -> str:
    """The split: a task source's own held-out projects are test rows in any case."""
    own = trajectory.task.tags.get("split") == "heldout_projects"
    return TEST if own or project_of(trajectory) in held_out else TRAIN


def is_held_out_bug(trajectory: Trajectory) -> bool:
    """Whether its source holds the bug out for evaluation although its project is trained on."""
    return trajectory.task.tags.get("split") == "heldout_bugs"

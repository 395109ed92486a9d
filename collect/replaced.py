"""Sets finished episodes of a run folder aside, so that they are run again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from gumshoe.records import StopReason, Trajectory
from gumshoe.storage import append_line, open_append, read_records

__all__ = ["FAILURES", "TRAJECTORIES", "Again", "set_aside"]

TRAJECTORIES = "trajectories.jsonl"
FAILURES = "failures.jsonl"
REPLACED = "replaced.jsonl"
DECIDED = (StopReason.SUBMITTED, StopReason.REPORTED)

Again = Literal["all", "failed"]


def set_aside(path: Path, again: Again) -> None:
    """Moves trajectories of a run folder to replaced.jsonl and forgets failed attempts, so that a run plays them again.

    Episodes in flight continue from their journals with `failed`, and begin anew with `all`. A process that is killed
    in between loses nothing: a trajectory is in replaced.jsonl before it leaves trajectories.jsonl.

    Args:
        path: the run folder, which its caller has locked.
        again: `all` trajectories, or those that `failed`: not resolved, or ended by a limit.

    Raises:
        DatasetError: trajectories.jsonl is broken.
    """
    if (path / TRAJECTORIES).exists():
        fresh = path / f".{TRAJECTORIES}.new"
        with open_append(path / REPLACED) as replaced, fresh.open("wb") as kept:
            for trajectory in read_records(path / TRAJECTORIES, Trajectory, finished=True):
                leaves = again == "all" or has_failed(trajectory)
                append_line(replaced if leaves else kept, trajectory.model_dump_json(), sync=False)
            for file in (replaced, kept):
                os.fsync(file.fileno())
        fresh.replace(path / TRAJECTORIES)
    (path / FAILURES).unlink(missing_ok=True)
    if again == "all":
        for journal in (path / "journal").glob("*"):
            journal.unlink()


def has_failed(trajectory: Trajectory) -> bool:
    """Whether an episode did not resolve its task or, if it was not judged, did not end by submit or report."""
    return trajectory.resolved is False or (trajectory.resolved is None and trajectory.stop not in DECIDED)

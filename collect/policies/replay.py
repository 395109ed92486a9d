"""Replays another run's episodes: the recorded completions in a new environment."""

from __future__ import annotations

from pathlib import Path

from gumshoe.collect.policies.scripted import ScriptedPolicy
from gumshoe.collect.store import read_trajectories
from gumshoe.errors import PolicyError

__all__ = ["Recordings"]


class Recordings:
    """The first trajectory of each task in a run folder, read once. Raises DatasetError."""

    def __init__(self, run: Path) -> None:
        self._run = run
        self._scripts = {}
        for trajectory in read_trajectories(run):
            script = tuple(step.completion for step in trajectory.steps)
            self._scripts.setdefault(trajectory.task.id, script)

    def policy(self, task_id: str) -> ScriptedPolicy:
        """A policy that does what was done on the task. Raises PolicyError for a task that is not in the run."""
        if task_id not in self._scripts:
            raise PolicyError(f"{self._run} has no trajectory of task {task_id} to replay")
        return ScriptedPolicy(self._scripts[task_id], kind="replay", trusted=False)

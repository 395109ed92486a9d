"""Policies that follow a list of completions: a script, or the recording of another run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gumshoe.collect.data.store import read_trajectories
from gumshoe.collect.episode.conversation import count_turns
from gumshoe.errors import ConfigError, PolicyError, ScriptExhausted
from gumshoe.records import Completion, Message, ToolSchema
from gumshoe.storage import read_records

__all__ = ["Recordings", "ScriptedPolicy", "load_script"]


class ScriptedPolicy:
    """Gives the completion of the turn that the conversation is at, so that a replayed episode finds its place.

    Args:
        script: one completion per turn.
        kind: what the trajectory calls the policy.
        trusted: the script is our own, or a recording of a policy that was trusted.
    """

    model = ""

    def __init__(self, script: Sequence[Completion], *, kind: str = "scripted", trusted: bool = True) -> None:
        self.kind = kind
        self.trusted = trusted
        self._script = tuple(script)

    def complete(self, messages: Sequence[Message], tools: Sequence[ToolSchema]) -> Completion:
        """The next completion. Raises ScriptExhausted after the last."""
        del tools
        turn = count_turns(messages)
        if turn >= len(self._script):
            raise ScriptExhausted(f"the script has no completion for turn {turn + 1}: it has only {len(self._script)}")
        return self._script[turn]


def load_script(path: Path) -> tuple[Completion, ...]:
    """The completions in a JSON-lines file. Raises ConfigError."""
    return tuple(read_records(path, Completion, error=ConfigError))


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

"""Whether this machine can hold and run an evaluation: images, sandboxes, disk."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from gumshoe.env.config import SandboxConfig
from gumshoe.env.sandboxes.open import choose
from gumshoe.env.tasks.casebook import is_built_in
from gumshoe.errors import ConfigError
from gumshoe.eval.arms.arm import Pair
from gumshoe.eval.preflight.faults import Faults

__all__ = ["check_disk", "check_sandboxes"]

BASE_KB = 100 << 10
EPISODE_KB = 512
"""Disk space for the trajectory, grades and page of an episode; most take less."""


def check_sandboxes(tasks: Sequence[Pair], config: SandboxConfig, faults: Faults) -> None:
    """Adds a fault for each image that cannot be obtained, and for each reason why no sandbox takes the tasks."""
    asked: set[tuple[str | None, str | None, bool]] = set()
    for task, _ in tasks:
        kind = (task.workspace.image, task.workspace.environment, is_built_in(task))
        if kind not in asked:
            asked.add(kind)
            with faults.collect():
                choose(task, config, trusted=True)


def check_disk(out: Path, episodes: int) -> None:
    """Raises ConfigError where the folder cannot be written, or its disk has no room for the episodes."""
    place = next(path for path in (out.absolute(), *out.absolute().parents) if path.exists())
    if not place.is_dir():
        raise ConfigError(f"the folder {out} cannot be created: {place} is a file")
    if not os.access(place, os.W_OK):
        raise ConfigError(f"the folder {out} cannot be created: {place} is not writable")
    free, wanted = shutil.disk_usage(place).free >> 20, (BASE_KB + EPISODE_KB * episodes) >> 10
    if free < wanted:
        raise ConfigError(f"the disk of {out} has {free} MB free; {episodes} episodes may take {wanted} MB")

"""Files of tasks that live in container images, read once, so that functions can be told apart there too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from gumshoe.cache import JsonlCache, digest
from gumshoe.collect.run.control import Control
from gumshoe.collect.run.parallel import run_parallel
from gumshoe.env.config import SandboxConfig
from gumshoe.env.diff import gold_lines
from gumshoe.env.repositories import Repositories
from gumshoe.env.sandboxes.open import choose, open_sandbox
from gumshoe.errors import GumshoeError, TaskError
from gumshoe.eval.scorers.localization import clean_path
from gumshoe.protocols import Sandbox
from gumshoe.records import Oracle, Task, Trajectory

__all__ = ["check_sources", "fetch_sources"]

Files = Mapping[str, str | None]


def fetch_sources(
    tasks: Sequence[tuple[Task, Oracle]],
    trajectories: Iterable[Trajectory],
    sandbox: SandboxConfig,
    path: Path,
    control: Control,
    workers: int,
    repositories: Repositories | None = None,
) -> dict[str, Files]:
    """The Python files that a gold patch or any pack names, by task id, for tasks that come only as an image.

    They are read from `repositories` where one of these has the task's base commit, else in a sandbox of the image.
    None stands for a file that does not exist. What was read is kept in the file `path`.

    Raises SandboxError or TaskError if neither can be read.
    """
    wanted = {task.id: set(gold_lines(oracle.gold_patch)) for task, oracle in tasks if task.workspace.path is None}
    for trajectory in trajectories:
        pack = trajectory.context_pack
        if pack is not None and trajectory.task.id in wanted:
            wanted[trajectory.task.id] |= {clean_path(place.path) for place in pack.locations}
    cache = JsonlCache(path)
    keys = {name: digest(name, sorted(paths)) for name, paths in wanted.items()}

    def read(task: Task) -> None:
        names = [name for name in sorted(wanted[task.id]) if name.endswith(".py")]
        if repositories is not None and repositories.find(task) is not None:
            files = repositories.read(task, names)
        else:
            files = _from_image(task, sandbox, names)
        cache.keep(keys[task.id], {"task_id": task.id, "files": files})

    todo = [task for task, _ in tasks if task.id in wanted and cache.get(keys[task.id]) is None]
    run_parallel(todo, read, workers=workers, control=control)
    known = {name: cache.get(key) for name, key in keys.items()}
    return {name: facts["files"] for name, facts in known.items() if facts is not None}


def _from_image(task: Task, sandbox: SandboxConfig, names: Sequence[str]) -> Files:
    opened = open_sandbox(task, sandbox, trusted=True)
    try:
        return {name: _text(opened, name) for name in names}
    finally:
        opened.close()


def check_sources(tasks: Iterable[Task], sandbox: SandboxConfig, repositories: Repositories | None) -> None:
    """Raises TaskError if a task that comes as an image has neither a repository here nor an image here or to pull."""
    for task in tasks:
        if task.workspace.path is not None or (repositories is not None and repositories.find(task) is not None):
            continue
        try:
            choose(task, sandbox, trusted=True)
        except GumshoeError as error:
            lacks = (
                "no repository in the folder `repositories` has its base commit"
                if repositories
                else ("the config names no folder of `repositories`")
            )
            raise TaskError(f"{task.id}: its files cannot be read: {error}; {lacks}") from None


def _text(sandbox: Sandbox, path: str) -> str | None:
    try:
        return sandbox.read_file(path).decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None

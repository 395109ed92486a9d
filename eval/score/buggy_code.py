"""The buggy files of tasks: read from where a task keeps them, or fetched beforehand for tasks that are images."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from gumshoe.cache import JsonlCache, digest
from gumshoe.collect.packs import clean_path
from gumshoe.collect.run.control import Control, run_parallel
from gumshoe.env.config import SandboxConfig
from gumshoe.env.diff import gold_lines
from gumshoe.env.git import Repositories
from gumshoe.env.sandboxes.open import choose, open_sandbox
from gumshoe.errors import GumshoeError, TaskError
from gumshoe.protocols import Sandbox
from gumshoe.records import Oracle, Task, Trajectory
from gumshoe.tools.code.functions import Span, spans

Files = Mapping[str, str | None]


class BuggyCode:
    """Looks up the functions in the files of tasks. Of tasks that are images, only the files `fetched` are known."""

    def __init__(self, tasks: Iterable[Task], fetched: Mapping[str, Mapping[str, str | None]] | None = None) -> None:
        self._tasks = {task.id: task for task in tasks}
        self._fetched = fetched or {}
        self._spans = lru_cache(maxsize=4096)(self._read_spans)

    def spans(self, task_id: str, path: str) -> tuple[Span, ...] | None:
        """Functions and classes of a file before the repair; None if there is no such readable Python file."""
        return self._spans(task_id, path)

    def text(self, task_id: str, path: str) -> str | None:
        """The file before the repair; None where it cannot be read, or would lie outside the repository."""
        task = self._tasks.get(task_id)
        if task is None:
            return None
        if path in task.workspace.overlay:
            return task.workspace.overlay[path]
        if task.workspace.path is None:
            return self._fetched.get(task_id, {}).get(path)
        root = Path(task.workspace.path).resolve()
        try:
            file = (root / path).resolve()
            return file.read_text(encoding="utf-8") if file.is_relative_to(root) else None
        except (OSError, ValueError, RuntimeError):
            return None

    def _read_spans(self, task_id: str, path: str) -> tuple[Span, ...] | None:
        text = self.text(task_id, path)
        return None if text is None else spans(text)


def fetch_buggy_code(
    tasks: Sequence[tuple[Task, Oracle]],
    trajectories: Iterable[Trajectory],
    sandbox: SandboxConfig,
    path: Path,
    control: Control,
    workers: int,
    repositories: Repositories | None = None,
) -> dict[str, Files]:
    """The Python files that a gold patch or any pack names, by task id, for played tasks that come only as an image.

    They are read from `repositories` where one of these has the task's base commit, else in a sandbox of the image.
    None stands for a file that does not exist. What was read is kept in the file `path`. A run that begins no further
    episode is still read for, one that is aborted is not.

    Raises SandboxError or TaskError if neither can be read.
    """
    played = list(trajectories)
    names_played = {trajectory.task.id for trajectory in played}
    in_images = [pair for pair in tasks if pair[0].workspace.path is None and pair[0].id in names_played]
    wanted = {task.id: set(gold_lines(oracle.gold_patch)) for task, oracle in in_images}
    for trajectory in played:
        pack = trajectory.context_pack
        if pack is not None and trajectory.task.id in wanted:
            wanted[trajectory.task.id] |= {clean_path(place.path) for place in pack.locations}
    cache = JsonlCache(path)
    keys = {name: digest(name, sorted(paths)) for name, paths in wanted.items()}

    def read(task: Task) -> None:
        if control.aborting:
            return
        names = [name for name in sorted(wanted[task.id]) if name.endswith(".py")]
        if repositories is not None and repositories.find(task) is not None:
            files = repositories.read(task, names)
        else:
            files = _from_image(task, sandbox, names)
        cache.keep(keys[task.id], {"task_id": task.id, "files": files})

    todo = [task for task, _ in in_images if cache.get(keys[task.id]) is None]
    run_parallel(todo, read, workers=workers, control=Control())
    known = {name: cache.get(key) for name, key in keys.items()}
    return {name: facts["files"] for name, facts in known.items() if facts is not None}


def _from_image(task: Task, sandbox: SandboxConfig, names: Sequence[str]) -> Files:
    opened = open_sandbox(task, sandbox, trusted=True)
    try:
        return {name: _text(opened, name) for name in names}
    finally:
        opened.close()


def check_buggy_code(tasks: Iterable[Task], sandbox: SandboxConfig, repositories: Repositories | None) -> None:
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
                else "the config names no folder of `repositories`"
            )
            raise TaskError(f"{task.id}: its files cannot be read: {error}; {lacks}") from None


def _text(sandbox: Sandbox, path: str) -> str | None:
    try:
        return sandbox.read_file(path).decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None

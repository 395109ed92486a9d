"""The gold patches of the tasks, where they can be found."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path

from gumshoe.config import read_yaml
from gumshoe.env.tasks import load_tasks
from gumshoe.errors import ConfigError, GumshoeError
from gumshoe.eval.view.sources import Source, inside

__all__ = ["GoldPatches"]

log = logging.getLogger(__name__)


class GoldPatches:
    """Gold patches by task, looked up in the task sources that were named and in those of the runs' configs.

    A config is data from elsewhere: of the sources it names, only the bundled ones are read, and folders that lie
    beside the run or below the folder that was given.

    Args:
        named: task sources that were given on the command line.
        known: gold patches by task id, which are not looked up.
    """

    def __init__(self, named: Iterable[str] = (), known: Mapping[str, str] | None = None) -> None:
        self._named = tuple(named)
        self._known = known or {}
        self._guard = threading.Lock()
        self._loaded: dict[str, Mapping[str, str]] = {}

    def of(self, task_id: str, source: Source) -> str | None:
        """The gold patch of a task of an episode in `source`; None where it is not known."""
        if task_id in self._known:
            return self._known[task_id]
        for wanted in (*self._named, *self._configured(source)):
            patch = self._load(wanted).get(task_id)
            if patch is not None:
                return patch
        return None

    def check(self) -> None:
        """Raises TaskError where a source that was given on the command line cannot be read."""
        for wanted in self._named:
            load_tasks(wanted)

    def _configured(self, source: Source) -> list[str]:
        """The task source of the source's config, if it may be read; the bundled tasks besides."""
        found: list[str] = []
        folder = source.path
        while folder.is_relative_to(source.root):
            wanted = _task_source(folder / "config.yaml", source.root)
            if wanted is not None and _may_read(wanted, source):
                found.append(wanted)
            folder = folder.parent
        beside = [source.path.parent / "tasks", source.root / "tasks", source.root.parent / "tasks"]
        found += [str(path) for path in beside if (path / "oracles.jsonl").is_file()]
        return [*dict.fromkeys(found), "casebook"]

    def _load(self, wanted: str) -> Mapping[str, str]:
        with self._guard:
            if wanted not in self._loaded:
                try:
                    pairs = load_tasks(wanted, on_error=_pass_over)
                except (GumshoeError, OSError) as error:
                    log.warning("no gold patches from %s: %s", wanted, error)
                    pairs = []
                self._loaded[wanted] = {task.id: oracle.gold_patch for task, oracle in pairs}
            return self._loaded[wanted]


def _pass_over(*_: object) -> None:
    """A task that cannot be read has no gold patch here."""


def _task_source(config: Path, root: Path) -> str | None:
    if not inside(config, root):
        return None
    try:
        tasks = read_yaml(config).get("tasks")
    except ConfigError:
        return None
    wanted = tasks.get("source") if isinstance(tasks, dict) else None
    return wanted if isinstance(wanted, str) else None


def _may_read(wanted: str, source: Source) -> bool:
    if wanted == "casebook":
        return True
    folder = Path(wanted)
    if not (folder / "oracles.jsonl").is_file():
        return False
    parents = {source.root, source.root.parent, source.path.parent}
    return folder.resolve().parent in parents

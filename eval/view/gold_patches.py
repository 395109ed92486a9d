"""The gold patches of the tasks, where they can be found."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path

from gumshoe.env.tasks import load_tasks
from gumshoe.errors import GumshoeError
from gumshoe.eval.view.sources import ORACLES, Source, read_config

__all__ = ["GoldPatches"]

log = logging.getLogger(__name__)


class GoldPatches:
    """Gold patches by task, looked up in the task sources that were named and in those of the runs' configs.

    A config is data from elsewhere: of the sources it names, only the bundled ones are read, and folders next to the
    run or next to one of the folders that contain it, up to the folder that was given.

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
        return self.finder(source)(task_id)

    def finder(self, source: Source) -> Callable[[str], str | None]:
        """The same for many tasks of one source: its config is read once."""
        sources = (*self._named, *self._configured(source))

        def find(task_id: str) -> str | None:
            loaded = (self._load(wanted) for wanted in sources)
            return next((patches[task_id] for patches in (self._known, *loaded) if task_id in patches), None)

        return find

    def check(self) -> None:
        """Raises TaskError where a source that was given on the command line cannot be read."""
        for wanted in self._named:
            load_tasks(wanted)

    def _configured(self, source: Source) -> list[str]:
        """The task source of the source's config, if it may be read; sets of tasks near it; the bundled tasks."""
        above = [source.path, *source.path.parents]
        folders = [folder for folder in above if folder.is_relative_to(source.root)]
        parents = [folder.parent for folder in folders]
        named = [wanted for folder in folders if (wanted := _task_source(folder, source.root)) is not None]
        beside = [folder / "tasks" for folder in (*parents, source.root)]
        found = [wanted for wanted in named if _may_read(wanted, parents)]
        found += [str(path) for path in beside if (path / ORACLES).is_file()]
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


def _task_source(folder: Path, root: Path) -> str | None:
    """The task source that a run's config names."""
    tasks = read_config(folder, root).get("tasks")
    wanted = tasks.get("source") if isinstance(tasks, dict) else None
    return wanted if isinstance(wanted, str) else None


def _may_read(wanted: str, parents: Collection[Path]) -> bool:
    """Whether a source that a config names is bundled, or a set of tasks in one of these folders."""
    if wanted == "casebook":
        return True
    folder = Path(wanted)
    return (folder / ORACLES).is_file() and folder.resolve().parent in parents

"""What `gumshoe view` was given: run folders, datasets and evaluations, recognized by the files in them.

Nothing else is ever served. A file that lies outside the given folder because of a link is refused.
The gold patches of tasks are looked up next to the runs.
"""

from __future__ import annotations

import logging
import os
import re
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Any, Literal, TypeVar

from gumshoe.collect.data.store import TRAJECTORIES
from gumshoe.config import RUN_CONFIG, read_yaml
from gumshoe.env.tasks import load_tasks
from gumshoe.errors import ConfigError, GumshoeError

Kind = Literal["run", "dataset", "evaluation"]
ReadT = TypeVar("ReadT")
FIGURES = {"summary.json", "results.jsonl"}
"""An evaluation holds at least one of these files, or, once it has begun, its config and a folder of arms."""
ARMS = "arms"
JOURNAL = "journal"
"""A run holds this folder, beside its config, or finished trajectories."""
CARD = "README.md"
"""In the folder of every dataset whose views are folders; without it, each of them is a dataset of its own."""
ORACLES = "oracles.jsonl"
"""In the folder of every set of tasks."""
DEPTH = 3
"""How many levels below an evaluation the run folders of its arms may lie."""
DEEPEST = 5
"""How many levels below a given folder sources are looked for."""
MOST_FOLDERS = 5_000
"""The most folders that are looked into below a given folder, in case a whole disk is given by mistake."""
_SHARD = re.compile(r"^(?P<split>.+)-[0-9a-f]+-\d+$|^(?P<plain>[^-]+)(?:-.*)?$")
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Source:
    """One thing to look at, called `name` on the screen.

    `slug` stands for it in addresses and stays the same from one start to the next; `parent` is that of the evaluation
    that a run belongs to; `root` is the given folder, and no file of the source may lie outside it.
    """

    slug: str
    kind: Kind
    path: Path
    root: Path
    parent: str | None
    name: str


def find_sources(paths: Sequence[Path]) -> list[Source]:
    """Every source in the given folders, evaluations in front of their runs.

    A folder that is not a source itself is searched, so that the folder of all demos can be given: to a depth of 5,
    without hidden folders, links and sets of tasks. Raises ConfigError if there is nothing to see.
    """
    found: list[_Found] = []
    for path in paths:
        if not path.is_dir():
            raise ConfigError(f"there is no folder {path}: give the folder of a run, a dataset or an evaluation")
        root = path.resolve()
        here = list(_search(root))
        if not here:
            raise ConfigError(
                f"{path} holds no run, dataset or evaluation: make one with gumshoe collect, export or eval"
            )
        found += here
    return _with_names(found)


@dataclass(frozen=True)
class _Found:
    """A source that has no name yet. `evaluation` is the folder of the one that a run belongs to."""

    kind: Kind
    path: Path
    root: Path
    evaluation: Path | None = None


def inside(path: Path, root: Path) -> bool:
    """Whether the file is there and, links followed, below the folder that was given."""
    return path.is_file() and path.resolve().is_relative_to(root)


def stamp(file: Path) -> tuple[int, int, int]:
    """A value that changes when a file is written; zeros for a file that cannot be looked at."""
    try:
        facts = file.stat()
    except OSError:
        return (0, 0, 0)
    return (facts.st_ino, facts.st_size, facts.st_mtime_ns)


def read_once(file: Path, root: Path, read: Callable[[Path], ReadT]) -> ReadT | None:
    """What `read` makes of a file, made anew once the file has changed; None where there is no such file in `root`."""
    return _read_once(file, stamp(file), read) if inside(file, root) else None


@lru_cache(maxsize=512)
def _read_once(file: Path, state: tuple[int, int, int], read: Callable[[Path], Any]) -> Any:
    return read(file)


def read_config(folder: Path, root: Path) -> Mapping[str, Any]:
    """The config.yaml of a folder; empty where there is none to read."""
    try:
        return read_once(folder / RUN_CONFIG, root, read_yaml) or {}
    except ConfigError:
        return {}


def parquet_files(source: Source) -> Iterator[tuple[str, str, Path]]:
    """The shards of a dataset as (view, split, file), in a fixed order; a plain folder's view is `default`."""
    for file in sorted(source.path.glob("*.parquet")):
        yield "default", _split_of(file), file
    for file in sorted(source.path.glob("*/*.parquet")):
        yield file.parent.name, _split_of(file), file


def _split_of(file: Path) -> str:
    match = _SHARD.match(file.stem)
    return (match["split"] or match["plain"]) if match else file.stem


def _search(root: Path) -> Iterator[_Found]:
    """The sources at and below a folder, in the order of their paths; a source is searched only for its own runs."""
    waiting = [(root, 0)]
    for _ in range(MOST_FOLDERS):
        if not waiting:
            return
        folder, depth = waiting.pop()
        kind = _kind_of(folder)
        if kind is not None:
            yield _Found(kind, folder, root)
            runs = _runs_below(folder, DEPTH) if kind == "evaluation" else ()
            yield from (_Found("run", run, root, evaluation=folder) for run in runs)
        elif depth < DEEPEST and not (folder / ORACLES).is_file():
            waiting += [(child, depth + 1) for child in reversed(_folders(folder))]


def _kind_of(folder: Path) -> Kind | None:
    """What a folder is. Its names are listed only once, since very many folders may be looked into."""
    try:
        names = {one.name for one in folder.iterdir()}
    except OSError:
        return None
    # Folders with these names are found anywhere; a run and an evaluation write their config first.
    begun = {name for name in names & {ARMS, JOURNAL} if RUN_CONFIG in names and (folder / name).is_dir()}
    if ARMS in begun or any((folder / name).is_file() for name in names & FIGURES):
        return "evaluation"
    if JOURNAL in begun or (TRAJECTORIES in names and (folder / TRAJECTORIES).is_file()):
        return "run"
    if any(name.endswith(".parquet") for name in names) or (CARD in names and any(folder.glob("*/*.parquet"))):
        return "dataset"
    return None


def _runs_below(folder: Path, depth: int) -> Iterator[Path]:
    for child in _folders(folder):
        if _kind_of(child) == "run":
            yield child
        elif depth > 1:
            yield from _runs_below(child, depth - 1)


def _folders(folder: Path) -> list[Path]:
    """The folders in a folder, in order, without hidden ones and links."""
    try:
        with os.scandir(folder) as entries:
            found = [one.name for one in entries if one.is_dir(follow_symlinks=False) and not one.name.startswith(".")]
    except OSError:
        return []
    return [folder / name for name in sorted(found)]


def _with_names(found: Iterable[_Found]) -> list[Source]:
    """Each source once, with a slug and a name of its own."""
    once: dict[Path, _Found] = {}
    for one in found:
        once.setdefault(one.path, one)
    names = _short_names([one.path for one in once.values() if one.evaluation is None])
    sources: dict[Path, Source] = {}
    taken: set[str] = set()
    for one in once.values():
        parent = None if one.evaluation is None else sources[one.evaluation].slug
        name = names[one.path] if one.evaluation is None else _name_in(one.path, one.evaluation)
        wanted = _slug((name if parent is None else f"{parent}.{name}").replace("/", "."))
        slug = _free(wanted, taken)
        taken.add(slug)
        told_apart = parent is not None or slug == wanted
        sources[one.path] = Source(slug, one.kind, one.path, one.root, parent, name if told_apart else slug)
    return list(sources.values())


def _free(wanted: str, taken: Collection[str]) -> str:
    """The slug, with a number appended if another source has it."""
    tried = (wanted if number == 1 else f"{wanted}-{number}" for number in count(1))
    return next(slug for slug in tried if slug not in taken)


def _short_names(paths: Sequence[Path]) -> dict[Path, str]:
    """The name of each folder, preceded by as many parent folders as it takes to tell it from the others."""
    names: dict[Path, str] = {}
    for length in range(1, max((len(path.parts) for path in paths), default=0) + 1):
        called = Counter(path.parts[-length:] for path in paths)
        for path in paths:
            if called[path.parts[-length:]] == 1 or length >= len(path.parts):
                names.setdefault(path, "/".join(path.parts[-length:]))
    return names


def _name_in(run: Path, evaluation: Path) -> str:
    """The name alone for an arm; the path for anything else in an evaluation: `solver/ARM`."""
    parts = run.relative_to(evaluation).parts
    return "/".join(parts[1:] if parts[0] == ARMS and len(parts) > 1 else parts)


def _slug(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "source"


class GoldPatches:
    """Gold patches by task, looked up in the task sources that were named and in those of the runs' configs.

    A config is data from elsewhere: of the sources it names, only the bundled ones are read, and folders next to the
    run or next to one of the folders that contain it, up to the folder that was given. Those in `known`, by task id,
    are not looked up. Raises TaskError if a source in `named` cannot be read.
    """

    def __init__(self, named: Iterable[str] = (), known: Mapping[str, str] | None = None) -> None:
        self._known = {task.id: oracle.gold_patch for wanted in named for task, oracle in load_tasks(wanted)}
        self._known |= known or {}
        self._guard = threading.Lock()
        self._loaded: dict[str, Mapping[str, str]] = {}

    def find(self, task_id: str, source: Source) -> str | None:
        """The gold patch of a task of an episode in `source`; None where it is not known."""
        return self.finder(source)(task_id)

    def finder(self, source: Source) -> Callable[[str], str | None]:
        """The same for many tasks of one source: its config is read once."""
        sources = self._configured(source)

        def find(task_id: str) -> str | None:
            loaded = (self._load(wanted) for wanted in sources)
            return next((patches[task_id] for patches in (self._known, *loaded) if task_id in patches), None)

        return find

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

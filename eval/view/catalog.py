"""Every episode of the folders that `gumshoe view` was given, and the words in it; kept up to date.

Runs only grow, so what was appended to a file is all that is read of it the next time. Where a file was replaced, as by
a new export, everything is read again, and the `era` changes.
"""

from __future__ import annotations

import json
import logging
import re
import sqlite3
import threading
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gumshoe.collect.data.store import TRAJECTORIES
from gumshoe.errors import DatasetError, GumshoeError
from gumshoe.eval.view.episodes import (
    read_line,
    read_live_episode,
    read_new_lines,
    read_row,
    read_shard,
    read_trajectory_line,
    read_trajectory_row,
)
from gumshoe.eval.view.rows import ListRow, make_dataset_row, make_row, searchable_text
from gumshoe.eval.view.sources import Source, find_sources, inside, parquet_files, stamp
from gumshoe.records import Trajectory
from gumshoe.storage import is_locked

log = logging.getLogger(__name__)

PAUSE_S = 1.0
Stamp = tuple[int, int, int]
"""As `sources.stamp` makes it."""
Identity = tuple[int, bytes] | tuple[Stamp, ...] | tuple[tuple[str, str, Path, Stamp], ...]
"""Of a run, an evaluation and a dataset, in this order."""


@dataclass(frozen=True)
class CatalogEntry:
    """An episode: where it is stored, and what the list shows of it.

    `place` is the offset of a run's line of `length` bytes, or the number of a dataset's row, whose `length` is 0.
    """

    key: str
    source: Source
    file: str
    place: int
    length: int
    row: ListRow
    live: bool = False


@dataclass
class SourceState:
    """How much of a source has been read, `reached` of `size` bytes, and what is wrong with it.

    `broken` lines or rows were no episodes; a `problem` keeps all of it from being read. It is `live` if a process
    works in it, and is to have `planned` episodes, if that is known. The `identity` stays the same while the source
    only grows: of a run the inode and the first line of its file, of others their files with the stamp of each.
    `journals` are `live` and the stamps of the journals of the episodes in progress.
    """

    reached: int = 0
    size: int = 0
    broken: int = 0
    live: bool = False
    planned: int | None = None
    problem: str | None = None
    identity: Identity | None = None
    journals: tuple[bool, tuple[Stamp, ...]] | None = None


class EpisodeIndex:
    """Episodes in the order in which they were read, and the words in them."""

    def __init__(self) -> None:
        self.entries: list[CatalogEntry] = []
        self.by_key: dict[str, CatalogEntry] = {}
        self.by_source: dict[str, list[CatalogEntry]] = defaultdict(list)
        self.by_task: dict[str, list[CatalogEntry]] = defaultdict(list)
        # In a file of SQLite's own, which is gone with the process.
        self._words = sqlite3.connect("", check_same_thread=False)
        self._words.execute("CREATE VIRTUAL TABLE words USING fts5(text, content='')")

    def add(self, entry: CatalogEntry, text: str) -> None:
        """Adds an episode, and the words that it is found by."""
        self._words.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (len(self.entries), text))
        self.entries.append(entry)
        self.by_key[entry.key] = entry
        self.by_source[entry.source.slug].append(entry)
        self.by_task[entry.row.task].append(entry)

    def search(self, terms: str) -> list[str]:
        """The keys of the episodes that match terms of SQLite's full-text search."""
        found = self._words.execute("SELECT rowid FROM words WHERE words MATCH ?", (terms,))
        return [self.entries[number].key for (number,) in found]

    def close(self) -> None:
        """Forgets the words."""
        self._words.close()


class Catalog:
    """The episodes in some folders. `refresh` takes in what is new, `start` does so again and again in a thread.

    `version` changes when anything does, `era` when entries are not only added; what was noted about earlier ones is
    then void. All words of all episodes can be searched once it is `ready`. Raises ConfigError if there is nothing to
    be seen in the folders.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = list(paths)
        self._guard = threading.Lock()
        """Held to read or change the indexes and which states there are: the thread adds to them while requests read.
        The fields of a state, `sources`, `version`, `era` and `ready` are read without it: only the thread changes
        them, each in one step, and a page asks again.
        """
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._finished = EpisodeIndex()
        self._running: dict[str, EpisodeIndex] = {}
        """The episodes in progress, by the slug of their run; made anew when one of them has changed."""
        self._states: dict[str, SourceState] = {}
        self.sources = find_sources(self._paths)
        self.version = self.era = 0
        self.ready = False

    def start(self) -> None:
        """Keeps the catalog up to date in a thread."""
        self._thread = threading.Thread(target=self._run, name="gumshoe-view", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends the thread and forgets the words. Idempotent."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        for index in self._indexes():
            index.close()

    def source(self, slug: str | None) -> Source | None:
        """The source with that slug."""
        return next((source for source in self.sources if source.slug == slug), None)

    def state(self, source: Source) -> SourceState:
        """How much of a source has been read."""
        with self._guard:
            return self._states.setdefault(source.slug, SourceState())

    def entries(self, first: int = 0, limit: int | None = None) -> list[CatalogEntry]:
        """The finished episodes in the order in which they were read."""
        with self._guard:
            return self._finished.entries[first : None if limit is None else first + limit]

    def live(self) -> list[CatalogEntry]:
        """The episodes in progress."""
        with self._guard:
            return [entry for index in self._running.values() for entry in index.entries]

    def episodes_on(self, task: str) -> list[CatalogEntry]:
        """The episodes on a task, those in progress last."""
        with self._guard:
            return [entry for index in self._indexes() for entry in index.by_task.get(task, ())]

    def episodes_in(self, source: Source) -> list[CatalogEntry]:
        """The finished episodes of a source."""
        with self._guard:
            return list(self._finished.by_source.get(source.slug, ()))

    def entry(self, key: str) -> CatalogEntry | None:
        """The episode with that key."""
        with self._guard:
            return next((index.by_key[key] for index in self._indexes() if key in index.by_key), None)

    def search(self, text: str) -> list[str]:
        """The keys of the episodes in which every word of `text` begins a word; what is in quotes is a phrase."""
        found = re.findall(r'"([^"]+)"|(\S+)', text.replace("\0", " "))
        terms = [term for phrase, word in found if re.search(r"\w", term := phrase or word.replace('"', ""))]
        if not terms:
            return []
        asked = " ".join(f'"{term}"*' for term in terms)
        with self._guard:
            return [key for index in self._indexes() for key in index.search(asked)]

    def _indexes(self) -> list[EpisodeIndex]:
        return [self._finished, *self._running.values()]

    def episode(self, entry: CatalogEntry) -> Trajectory:
        """The episode itself, read again. Raises DatasetError."""
        source = entry.source
        if entry.live:
            episode = read_live_episode(source.path / "journal" / entry.file, source.root)
            if episode is None:
                raise DatasetError("this episode has ended: look for it in the list")
            return episode
        file = self.file(entry)
        if source.kind == "dataset":
            return read_trajectory_row(read_row(file, entry.place))
        return read_trajectory_line(read_line(file, entry.place, entry.length))

    def file(self, entry: CatalogEntry) -> Path:
        """The file that a finished episode is in. Raises DatasetError."""
        file = entry.source.path / entry.file
        if not inside(file, entry.source.root):
            raise DatasetError(f"{entry.file} no longer exists")
        return file

    def words(self, entry: CatalogEntry) -> str:
        """What can be searched of an episode; nothing if it is gone."""
        try:
            return searchable_text(self.episode(entry))
        except DatasetError as error:
            log.info("%s", error)
            return ""

    def refresh(self) -> None:
        """Takes in everything that is new."""
        if not self._find_sources():
            return
        while not self._read_sources():
            self._start_over()
        self.ready = not self._stop.is_set()

    def _run(self) -> None:
        while not self._stop.is_set():
            self.refresh()
            self._stop.wait(PAUSE_S)

    def _find_sources(self) -> bool:
        """Searches the folders again: arms of a running evaluation appear while the viewer is open.

        Returns False, and notes why, if there is nothing left of them.
        """
        try:
            found = find_sources(self._paths)
        except GumshoeError as error:
            for source in self.sources:
                self._note_problem(self.state(source), str(error))
            return False
        if found != self.sources:
            gone = {source.slug for source in self.sources} - {source.slug for source in found}
            self.sources = found
            self.version += 1
            if any(index.by_source.get(slug) for index in self._indexes() for slug in gone):
                self._start_over()
        return True

    def _start_over(self) -> None:
        with self._guard:
            for index in self._indexes():
                index.close()
            self._finished, self._running, self._states = EpisodeIndex(), {}, {}
            self.version += 1
            self.era += 1
            self.ready = False

    def _read_sources(self) -> bool:
        """Reads what is new in each source. Returns False if something that was read before has changed."""
        for source in self.sources:
            state = self.state(source)
            try:
                if source.kind == "evaluation":
                    self._read_evaluation(source, state)
                    continue
                unchanged = self._read_run(source, state) if source.kind == "run" else self._read_shards(source, state)
                if not unchanged:
                    return False
            except (GumshoeError, OSError) as error:
                self._note_problem(state, str(error))
        return True

    def _note_problem(self, state: SourceState, problem: str) -> None:
        if state.problem != problem:
            state.problem = problem
            self.version += 1

    def _read_evaluation(self, source: Source, state: SourceState) -> None:
        """Only notes that an evaluation's figures have changed; its episodes are in its runs."""
        files = [source.path / name for name in ("summary.json", "results.jsonl")]
        identity = tuple(stamp(file) for file in files if inside(file, source.root))
        if identity != state.identity:
            state.identity = identity
            self.version += 1

    def _read_run(self, source: Source, state: SourceState) -> bool:
        file = source.path / TRAJECTORIES
        if file.exists():
            if not inside(file, source.root):
                raise DatasetError(f"{TRAJECTORIES} is a link that leads out of the folder, so it is not served")
            with file.open("rb") as opened:
                identity = (file.stat().st_ino, opened.read(4096).partition(b"\n")[0])
            state.size = file.stat().st_size
            if state.reached and (identity != state.identity or state.size < state.reached):
                return False
            state.identity = identity
            self._read_lines(source, state, file)
        elif state.reached:
            return False
        self._read_live(source, state)
        return True

    def _read_lines(self, source: Source, state: SourceState, file: Path) -> None:
        for offset, data in read_new_lines(file, state.reached) if state.reached < state.size else ():
            try:
                episode = read_trajectory_line(data)
                key = f"{source.slug}~{offset}"
                self._add(CatalogEntry(key, source, TRAJECTORIES, offset, len(data), make_row(episode)), episode)
            except DatasetError:
                state.broken += 1
            state.reached = offset + len(data) + 1
            if self._stop.is_set():
                return

    def _read_live(self, source: Source, state: SourceState) -> None:
        """Takes in the episodes in progress, if any has changed, and whether a process works in the folder."""
        journals = [path for path in (source.path / "journal").glob("*.jsonl") if ".diverged-" not in path.name]
        state.live = inside(source.path / ".lock", source.root) and is_locked(source.path)
        seen = (state.live, tuple(stamp(path) for path in sorted(journals)))
        if seen == state.journals:
            return
        state.journals, state.planned = seen, _planned(source)
        index = EpisodeIndex()
        for path in sorted(journals):
            episode = read_live_episode(path, source.root)
            if episode is not None:
                key = f"{source.slug}~j.{path.stem}"
                row = replace(make_row(episode), outcome="running", stop="running")
                index.add(CatalogEntry(key, source, path.name, 0, 0, row, live=True), searchable_text(episode))
        with self._guard:
            if source.slug in self._running:
                self._running.pop(source.slug).close()
            if index.entries:
                self._running[source.slug] = index
            else:
                index.close()
            self.version += 1

    def _read_shards(self, source: Source, state: SourceState) -> bool:
        shards = [shard for shard in parquet_files(source) if inside(shard[2], source.root)]
        identity = tuple((view, split, file, stamp(file)) for view, split, file in shards)
        if identity == state.identity:
            return True
        if state.identity is not None:
            return False
        state.identity = identity
        state.size = sum(file.stat().st_size for _, _, file in shards)
        for view, split, file in shards:
            self._read_shard(source, state, view, split, file)
            state.reached += file.stat().st_size
        return True

    def _read_shard(self, source: Source, state: SourceState, view: str, split: str, file: Path) -> None:
        name = str(file.relative_to(source.path))
        for number, data in enumerate(read_shard(file)):
            key = f"{source.slug}~{view}~{split}~{file.stem.rpartition('-')[2]}~{number}"
            try:
                episode = read_trajectory_row(data)
                row = make_dataset_row(data, episode, view, split)
                self._add(CatalogEntry(key, source, name, number, 0, row), episode)
            except DatasetError:
                state.broken += 1

    def _add(self, entry: CatalogEntry, episode: Trajectory) -> None:
        text = searchable_text(episode)
        with self._guard:
            self._finished.add(entry, text)
            self.version += 1


def _planned(source: Source) -> int | None:
    """How many episodes the run is to have."""
    file = source.path / "state.json"
    try:
        planned = json.loads(file.read_text(encoding="utf-8")).get("planned") if inside(file, source.root) else None
    except (OSError, ValueError, AttributeError):
        return None
    return planned if isinstance(planned, int) else None

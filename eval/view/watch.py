"""Keeps the index up to date: reads what is new in each source, from where it stopped before.

Rows come first, in small batches, so that a list can be shown at once; the words to search in follow.
"""

from __future__ import annotations

import hashlib
import json
import logging
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gumshoe.errors import DatasetError, GumshoeError
from gumshoe.eval.view.facts import row_of_dataset, row_of_journal, row_of_trajectory, words_of
from gumshoe.eval.view.index import Index, IndexEntry
from gumshoe.eval.view.reading import as_object, journal_entries, new_lines, read_line, read_row, shard_rows
from gumshoe.eval.view.sources import TRAJECTORIES, Source, find_sources, inside, parquet_files, stamp
from gumshoe.locks import is_locked

__all__ = ["Progress", "Watcher"]

log = logging.getLogger(__name__)

BATCH = 200
"""Rows that are indexed at a time."""
BATCH_BYTES = 8_000_000
WORDS_BATCH = 100
REST = 10
"""Pause between two looks, as a multiple of the time that a search of the folders takes, so that large trees are not
searched all the time."""


@dataclass
class Progress:
    """How much of a source is indexed, in bytes or rows, and its problem."""

    reached: int = 0
    size: int = 0
    broken: int = 0
    live: bool = False
    problem: str | None = None
    mark: object = None
    planned: int | None = None


class Watcher:
    """Finds the sources in the given folders and keeps an index of them, on request or in a thread of its own.

    Args:
        paths: the folders.
        index: the index to keep.
        every_s: pause between two looks.
    """

    def __init__(self, paths: Sequence[Path], index: Index, every_s: float = 1.0) -> None:
        self._paths = list(paths)
        self._index = index
        self._every_s = every_s
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.sources = find_sources(self._paths)
        self.progress = {source.slug: Progress() for source in self.sources}
        self._search_s = 0.0
        self._era = index.era
        self._kept: Sequence[Source] = ()
        self.ready = False
        """Whether all words of all episodes have been indexed."""

    def start(self) -> None:
        """Starts to look, in a thread."""
        self._thread = threading.Thread(target=self._run, name="gumshoe-view-index", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends the thread. Idempotent."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def source(self, slug: str) -> Source | None:
        """The source with that slug."""
        return next((source for source in self.sources if source.slug == slug), None)

    def look(self) -> None:
        """Takes in everything that is new."""
        self._find()
        if self.sources is not self._kept:
            self._index.keep_only(source.slug for source in self.sources)
            self._kept = self.sources
        while True:
            if self._index.era != self._era:
                self._forget_marks()
            self._take_in_all()
            if self._index.era == self._era:
                break
        while not self._stop.is_set() and self._take_words():
            pass
        self.ready = True

    def _forget_marks(self) -> None:
        """Has every source read again, as the index has started over."""
        self._era = self._index.era
        for progress in self.progress.values():
            progress.mark = None

    def _take_in_all(self) -> None:
        for source in self.sources:
            progress = self.progress[source.slug]
            try:
                self._take_in(source, progress)
            except (GumshoeError, OSError) as error:
                self._say(progress, str(error))

    def _run(self) -> None:
        while not self._stop.is_set():
            self.look()
            self._stop.wait(max(self._every_s, REST * self._search_s))

    def _find(self) -> None:
        """Searches the folders again: arms of a running evaluation appear while the viewer is open."""
        began = time.monotonic()
        try:
            found = find_sources(self._paths)
        except GumshoeError as error:
            for progress in self.progress.values():
                self._say(progress, str(error))
            return
        finally:
            self._search_s = time.monotonic() - began
        if found != self.sources:
            for source in found:
                self.progress.setdefault(source.slug, Progress())
            self.sources = found
            self._index.touch()

    def _say(self, progress: Progress, problem: str) -> None:
        if progress.problem != problem:
            progress.problem = problem
            self._index.touch()

    def _take_in(self, source: Source, progress: Progress) -> None:
        if source.kind == "run":
            self._take_run(source, progress)
        elif source.kind == "dataset":
            self._take_dataset(source, progress)
        else:
            self._take_evaluation(source, progress)

    def _take_evaluation(self, source: Source, progress: Progress) -> None:
        """Only notes that an evaluation's figures have changed; its episodes are in its runs."""
        files = [source.path / name for name in ("summary.json", "results.jsonl")]
        mark = [stamp(file) for file in files if inside(file, source.root)]
        if mark != progress.mark:
            progress.mark = mark
            self._index.touch()

    def _take_run(self, source: Source, progress: Progress) -> None:
        file = source.path / TRAJECTORIES
        if file.exists():
            if not inside(file, source.root):
                raise DatasetError(f"{TRAJECTORIES} is a link that leads out of the folder, so it is not served")
            self._take_lines(source, progress, file)
        self._take_live(source, progress)

    def _take_lines(self, source: Source, progress: Progress, file: Path) -> None:
        progress.size = file.stat().st_size
        start, broken = self._index.reached(source.slug, _head(file))
        if progress.size < start:
            self._index.reached(source.slug, "shrunk")
            start, broken = self._index.reached(source.slug, _head(file))
        progress.reached, progress.broken = start, broken
        entries: list[IndexEntry] = []
        taken = 0
        for line in new_lines(file, start) if start < progress.size else ():
            data = as_object(line.data)
            if data is None:
                broken += 1
            else:
                key = f"{source.slug}~{line.place}"
                row = row_of_trajectory(data)
                entries.append(IndexEntry(key, source.slug, TRAJECTORIES, line.place, len(line.data), row))
            start = line.place + len(line.data) + 1
            taken += len(line.data)
            if len(entries) >= BATCH or taken > BATCH_BYTES:
                self._keep(source, progress, entries, start, broken)
                entries, taken = [], 0
                if self._stop.is_set():
                    return
        if start != progress.reached:
            self._keep(source, progress, entries, start, broken)

    def _take_live(self, source: Source, progress: Progress) -> None:
        """Takes in the episodes in progress, if any has changed, and whether a process works in the folder."""
        journals = source.path / "journal"
        files = sorted(journals.glob("*.jsonl")) if inside_folder(journals, source.root) else []
        live = inside(source.path / ".lock", source.root) and is_locked(source.path)
        mark = [live, [stamp(file) for file in files]]
        if mark == progress.mark:
            return
        progress.mark, progress.live, progress.planned = mark, live, _planned(source)
        found: list[tuple[IndexEntry, str]] = []
        for name, entries in journal_entries(source) if files else ():
            entry = IndexEntry(f"{source.slug}~j.{name}", source.slug, name, 0, 0, row_of_journal(entries), live=True)
            found.append((entry, words_of({"journal": entries})))
        self._index.set_live(source.slug, found)

    def _take_dataset(self, source: Source, progress: Progress) -> None:
        shards = [shard for shard in parquet_files(source) if inside(shard[2], source.root)]
        mark = json.dumps([(view, split, str(file), stamp(file)) for view, split, file in shards])
        progress.size = sum(file.stat().st_size for _, _, file in shards)
        reached, broken = self._index.reached(source.slug, mark)
        if reached >= progress.size or progress.mark == mark:
            progress.reached = progress.size
            return
        done = 0
        for view, split, file in shards:
            if done >= reached:
                entries = list(_shard_entries(source, view, split, file))
                for first in range(0, max(1, len(entries)), BATCH):
                    batch = entries[first : first + BATCH]
                    last = first + BATCH >= len(entries)
                    self._keep(source, progress, batch, done + file.stat().st_size if last else done, broken)
            done += file.stat().st_size
            if self._stop.is_set():
                return
        progress.mark = mark

    def _keep(self, source: Source, progress: Progress, entries: list[IndexEntry], reached: int, broken: int) -> None:
        progress.reached, progress.broken = reached, broken
        self._index.add(source.slug, entries, reached, broken)

    def _take_words(self) -> bool:
        """Takes in the words of the next episodes; returns False if there are none left."""
        rows = self._index.without_words(WORDS_BATCH)
        if not rows:
            return False
        self.ready = False
        self._index.add_words([(row[0], self.words_at(*row[1:])) for row in rows])
        return True

    def words_at(self, slug: str, name: str, place: int, length: int) -> str:
        """The words of an indexed episode."""
        return words_of(self._raw(slug, name, place, length))

    def _raw(self, slug: str, name: str, place: int, length: int) -> Mapping[str, Any]:
        """The data of an indexed episode; nothing where it is gone."""
        source = self.source(slug)
        if source is None:
            return {}
        file = source.path / name
        try:
            if not inside(file, source.root):
                return {}
            return read_row(file, place) if length == 0 else as_object(read_line(file, place, length)) or {}
        except DatasetError as error:
            log.info("%s", error)
            return {}


def _shard_entries(source: Source, view: str, split: str, file: Path) -> Iterator[IndexEntry]:
    name = str(file.relative_to(source.path))
    for number, data in enumerate(shard_rows(file)):
        key = f"{source.slug}~{view}~{split}~{file.stem.rpartition('-')[2]}~{number}"
        yield IndexEntry(key, source.slug, name, number, 0, row_of_dataset(data, view, split))


def inside_folder(path: Path, root: Path) -> bool:
    """Whether the folder is there and, links followed, below the folder that was given."""
    return path.is_dir() and path.resolve().is_relative_to(root)


def _head(file: Path) -> str:
    """Identifies a run's file: stays the same while the file grows, and changes when it is replaced."""
    with file.open("rb") as opened:
        head = opened.read(4096).partition(b"\n")[0]
    return f"{file} {file.stat().st_ino} {hashlib.sha256(head).hexdigest()}"


def _planned(source: Source) -> int | None:
    """How many episodes the run is to have."""
    file = source.path / "state.json"
    if not inside(file, source.root):
        return None
    try:
        planned = json.loads(file.read_text(encoding="utf-8")).get("planned")
    except (OSError, ValueError, AttributeError):
        return None
    return planned if isinstance(planned, int) else None

"""The index: an SQLite file in a cache folder, with one row per episode and the words of each.

It can always be rebuilt from its sources, so it is thrown away when its form changes. One process writes to it; readers
have connections of their own and are never in its way.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import tempfile
import threading
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gumshoe.errors import ConfigError
from gumshoe.eval.view.facts import ListRow
from gumshoe.locks import try_lock

__all__ = ["Index", "IndexEntry", "cache_folder"]

SCHEMA_VERSION = 5
"""Changes with the tables and with what is in them."""

TABLES = f"""
CREATE TABLE sources (slug TEXT PRIMARY KEY, mark TEXT, reached INTEGER, broken INTEGER);
CREATE TABLE episodes (
    n INTEGER PRIMARY KEY, key TEXT UNIQUE, source TEXT, file TEXT, place INTEGER, length INTEGER, live INTEGER,
    id TEXT, task TEXT, project TEXT, policy TEXT, outcome TEXT, stop TEXT, steps INTEGER, tokens INTEGER, cost REAL,
    seconds REAL, created TEXT, strip TEXT, locations TEXT, facts TEXT
);
CREATE INDEX by_source ON episodes (source, live);
CREATE INDEX by_task ON episodes (task);
CREATE VIRTUAL TABLE words USING fts5(text, content='');
CREATE VIRTUAL TABLE live_words USING fts5(text);
PRAGMA user_version = {SCHEMA_VERSION};
"""
INSERT = f"INSERT OR REPLACE INTO episodes VALUES (NULL{', ?' * 20})"


@dataclass(frozen=True)
class IndexEntry:
    """A row of the index: where its data is (`place` and `length` in `file`), and what the list shows."""

    key: str
    source: str
    file: str
    place: int
    length: int
    row: ListRow
    live: bool = False

    def values(self) -> tuple[Any, ...]:
        """The columns after `n`."""
        row = self.row
        return (
            *(self.key, self.source, self.file, self.place, self.length, int(self.live)),
            *(row.id, row.task, row.project, row.policy, row.outcome, row.stop, row.steps),
            *(row.tokens, row.cost, row.seconds, row.created, row.strip),
            json.dumps(row.locations),
            json.dumps(dict(row.facts), ensure_ascii=False),
        )


class Index:
    """The index over some folders. Use it as a context manager.

    Args:
        paths: the folders that it is about; the same ones find the same file again.
        folder: where the file is kept. While another process writes to it, this one makes its own next to it.

    Raises:
        ConfigError: the folder cannot be written, or this Python's SQLite has no full-text search.
    """

    def __init__(self, paths: Sequence[Path], folder: Path) -> None:
        name = hashlib.sha256(json.dumps([str(path.resolve()) for path in paths]).encode()).hexdigest()[:20]
        self._guard = threading.Lock()
        self._scratch: tempfile.TemporaryDirectory[str] | None = None
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._lock = try_lock(folder / f"{name}.lock")
            if self._lock is None:
                self._scratch = tempfile.TemporaryDirectory(dir=folder, prefix="own-")
                folder = Path(self._scratch.name)
            self.path = (folder / f"{name}.sqlite").absolute()
            self._writer = self._opened()
        except (OSError, sqlite3.OperationalError) as error:
            raise ConfigError(f"the index cannot be kept in {folder}: {error} (see --cache)") from None
        self.version = 0
        self.era = 0
        """Grows when the index starts over; anything noted about its earlier state is then void."""

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file and keeps it. Idempotent."""
        with self._guard:
            self._writer.close()
        if self._lock is not None:
            self._lock.close()
        if self._scratch is not None:
            self._scratch.cleanup()

    @contextmanager
    def reading(self) -> Generator[sqlite3.Connection]:
        """A connection that only reads, for as long as it is needed."""
        connection = sqlite3.connect(f"{self.path.as_uri()}?mode=ro", uri=True, timeout=30)
        try:
            yield connection
        finally:
            connection.close()

    def reached(self, slug: str, mark: str) -> tuple[int, int]:
        """How far the source is indexed (bytes or rows), and how many broken lines there were.

        `mark` identifies the state of the source that was indexed: if it differs, the source is dropped.
        """
        with self._guard:
            row = self._writer.execute("SELECT mark, reached, broken FROM sources WHERE slug = ?", (slug,)).fetchone()
            if row is not None and row[0] == mark:
                return int(row[1]), int(row[2])
            known = self._writer.execute("SELECT 1 FROM episodes WHERE source = ? LIMIT 1", (slug,)).fetchone()
            if known is not None:
                self._start_over()
            self._writer.execute("INSERT OR REPLACE INTO sources VALUES (?, ?, 0, 0)", (slug, mark))
            self._writer.commit()
            self.version += 1
            return 0, 0

    def keep_only(self, slugs: Iterable[str]) -> None:
        """Starts over where the index holds episodes of sources that are gone."""
        with self._guard:
            held = {row[0] for row in self._writer.execute("SELECT DISTINCT source FROM episodes")}
            if held - set(slugs):
                self._start_over()
                self._writer.commit()
                self.version += 1

    def add(self, slug: str, entries: Iterable[IndexEntry], reached: int, broken: int) -> None:
        """Adds finished episodes, and notes how far the source is indexed."""
        with self._guard:
            for entry in entries:
                self._writer.execute(INSERT, entry.values())
            self._writer.execute("UPDATE sources SET reached = ?, broken = ? WHERE slug = ?", (reached, broken, slug))
            self._writer.commit()
            self.version += 1

    def add_words(self, texts: Iterable[tuple[int, str]]) -> None:
        """Adds the words of finished episodes, by the episode's number."""
        with self._guard:
            self._writer.executemany("INSERT INTO words (rowid, text) VALUES (?, ?)", texts)
            self._writer.commit()
            self.version += 1

    def set_live(self, slug: str, episodes: Sequence[tuple[IndexEntry, str]]) -> None:
        """Replaces the episodes in progress of a source, and their words."""
        with self._guard:
            old = "SELECT n FROM episodes WHERE source = ? AND live"
            self._writer.execute(f"DELETE FROM live_words WHERE rowid IN ({old})", (slug,))
            self._writer.execute("DELETE FROM episodes WHERE source = ? AND live", (slug,))
            for entry, text in episodes:
                number = self._writer.execute(INSERT, entry.values()).lastrowid
                self._writer.execute("INSERT INTO live_words (rowid, text) VALUES (?, ?)", (number, text))
            self._writer.commit()
            self.version += 1

    def without_words(self, limit: int) -> list[tuple[int, str, str, int, int]]:
        """The next finished episodes whose words are not in yet, as (n, source, file, place, length)."""
        with self._guard:
            last = self._writer.execute("SELECT coalesce(max(id), 0) FROM words_docsize").fetchone()[0]
            return self._writer.execute(
                "SELECT n, source, file, place, length FROM episodes WHERE n > ? AND NOT live ORDER BY n LIMIT ?",
                (last, limit),
            ).fetchall()

    def touch(self) -> None:
        """Notes that something other than the episodes has changed."""
        self.version += 1

    def _opened(self) -> sqlite3.Connection:
        """A connection for writing, to a file in the current form."""
        try:
            connection = self._connect()
            if connection.execute("PRAGMA user_version").fetchone()[0] == SCHEMA_VERSION:
                return connection
            connection.close()
        except sqlite3.DatabaseError:
            pass
        for suffix in ("", "-wal", "-shm"):
            self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)
        connection = self._connect()
        connection.executescript(TABLES)
        return connection

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=30, check_same_thread=False)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = OFF")
        except sqlite3.DatabaseError:
            connection.close()
            raise
        return connection

    def _start_over(self) -> None:
        """Empties everything: the words of a single episode cannot be removed."""
        for table in ("sources", "episodes", "live_words"):
            self._writer.execute(f"DELETE FROM {table}")
        self._writer.execute("INSERT INTO words (words) VALUES ('delete-all')")
        self.era += 1


def cache_folder() -> Path:
    """Where indexes are kept unless the command line says otherwise."""
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "gumshoe" / "view"

"""All answers that the viewer gives, for the web server and for the files of a static copy alike."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gumshoe.errors import DatasetError
from gumshoe.eval.view import episode, query
from gumshoe.eval.view.evaluations import evaluation_of, task_of
from gumshoe.eval.view.gold_patches import GoldPatches
from gumshoe.eval.view.index import Index
from gumshoe.eval.view.masks import Masks
from gumshoe.eval.view.outcomes import label_of, shown_rows
from gumshoe.eval.view.reading import read_journal, read_line, read_row
from gumshoe.eval.view.solvers import evaluated
from gumshoe.eval.view.sources import Source, inside
from gumshoe.eval.view.trees import tree_ids, tried_beside
from gumshoe.eval.view.watch import Watcher

__all__ = ["Library", "NotThere"]

Answer = dict[str, Any]
ROWS = 2_000
"""The most rows in one answer."""


class NotThere(DatasetError):
    """There is nothing at this address."""


class Library:
    """What there is to see.

    Args:
        watcher: keeps the index.
        index: the index that is asked.
        gold: knows the gold patches.
        masks: knows which tokens train; None where no model was given.
    """

    def __init__(self, watcher: Watcher, index: Index, gold: GoldPatches, masks: Masks | None) -> None:
        self.watcher = watcher
        self._index = index
        self._gold = gold
        self._masks = masks
        self._started = secrets.token_hex(4)

    def overview(self) -> Answer:
        """Every source with how far it is indexed; `version` changes when anything does."""
        version = self._index.version
        with self._index.reading() as connection:
            counts = dict(connection.execute("SELECT source, count(*) FROM episodes GROUP BY 1").fetchall())
        return {
            "version": version,
            "searchable": self.watcher.ready,
            "masks": self._masks is not None,
            "sources": [self._describe(source, counts.get(source.slug, 0)) for source in self.watcher.sources],
        }

    def rows(self, era: str, last: int, limit: int = ROWS) -> Answer:
        """The next rows of the list, with everything that is known of each.

        Args:
            era: the `era` of an earlier answer; if the index has another one by now, the rows start over.
            last: number of the last row that the caller knows.
            limit: how many at most.

        Returns:
            `era`, `first` (whether what was known before is void), `last`, `rows`, `more`, and `live`: every episode
            in progress.
        """
        now = f"{self._started}.{self._index.era}"
        known = last if era == now else 0
        with self._index.reading() as connection:
            last, rows = query.rows_after(connection, known, limit)
            live = query.live_rows(connection)
        return {
            "era": now,
            "first": known == 0,
            "last": last,
            "more": len(rows) == limit,
            "rows": self._shown(rows),
            "live": self._shown(live),
        }

    def search(self, text: str) -> Answer:
        """The keys of the episodes in which `text` is found."""
        with self._index.reading() as connection:
            return {"keys": query.search(connection, text)}

    def episode(self, key: str) -> Answer:
        """One episode, whole but for overlong texts. Raises NotThere and DatasetError."""
        place, source = self._find(key)
        if place["live"]:
            found = episode.of_journal(self._journal(source, place["file"]))
        elif source.kind == "dataset":
            row = read_row(self._file(source, place["file"]), place["place"])
            found = episode.of_dataset(row, self._gold.of(place["task"], source))
        else:
            line = read_line(self._file(source, place["file"]), place["place"], place["length"])
            found = episode.of_trajectory(line, self._gold.of(place["task"], source))
        with self._index.reading() as connection:
            others = query.siblings(connection, place["task"]) if place["task"] else []
            row = query.episode_row(connection, key)
        if source.kind == "dataset" and row is not None:
            found["stop"] = row["stop"]
        return {
            "key": key,
            "kind": source.kind,
            "live": bool(place["live"]),
            "row": self._shown([row])[0] if row is not None else None,
            "siblings": self._shown(others),
            "tree": self._tree(place, source),
            **episode.cap({**found, "evaluated": self._evaluated(source, place, found)}),
        }

    def _tree(self, place: Answer, source: Source) -> list[Answer]:
        """What else was tried at the steps of a finished episode; nothing for one that is not in a tree."""
        if source.kind != "run" or place["live"]:
            return []
        with self._index.reading() as connection:
            rows = query.tree_rows(connection, source.slug, place["task"])
        parents = {name: str(row["facts"]["branch of"]) for name, row in rows.items() if "branch of" in row["facts"]}
        members = [rows[name] for name in tree_ids(place["id"], parents) if name in rows]
        if len(members) < 2:
            return []
        lines = (read_line(self._file(source, row["file"]), row["place"], row["length"]) for row in members)
        shown = {row["id"]: row for row in self._shown(members)}
        return tried_beside(place["id"], lines, shown)

    def raw(self, key: str) -> bytes:
        """The stored JSON of a finished trajectory, as it is. Raises NotThere and DatasetError."""
        place, source = self._find(key)
        if source.kind != "run" or place["live"]:
            raise NotThere("only finished trajectories are stored as JSON")
        return read_line(self._file(source, place["file"]), place["place"], place["length"])

    def mask(self, key: str) -> Answer:
        """Which tokens of a dataset's row train. Raises NotThere and DatasetError."""
        place, source = self._find(key)
        if self._masks is None or source.kind != "dataset":
            raise NotThere("the mask needs a model's tokenizer: start with --model FOLDER")
        row = read_row(self._file(source, place["file"]), place["place"])
        messages = row.get("messages") or [*(row.get("prompt") or ()), *(row.get("completion") or ())]
        answer = self._masks.of({**row, "messages": messages})
        return {"model": self._masks.model.name, **episode.cap(answer)}

    def evaluation(self, slug: str) -> Answer:
        """The figures of an evaluation. Raises NotThere and DatasetError."""
        source = self.watcher.source(slug)
        if source is None or source.kind != "evaluation":
            raise NotThere(f"there is no evaluation {slug}")
        return evaluation_of(source, self._keys(source))

    def task(self, slug: str, task: str) -> Answer:
        """One task of an evaluation. Raises NotThere and DatasetError."""
        source = self.watcher.source(slug)
        if source is None or source.kind != "evaluation":
            raise NotThere(f"there is no evaluation {slug}")
        keys = self._keys(source)
        found = task_of(source, task, keys, self._gold.of(task, source))
        first = next((key for one in found["attempts"] if (key := one["key"] or one["solver_key"]) is not None), None)
        messages = self.episode(first)["messages"] if first is not None else []
        asked = next((message["content"] for message in messages if message["role"] == "user"), "")
        return {**found, "prompt": asked}

    def _shown(self, rows: Sequence[Answer]) -> list[Answer]:
        return shown_rows(rows, self.watcher.sources, self._gold)

    def words(self, first: int, last: int) -> Sequence[tuple[str, str]]:
        """Key and words of finished episodes, as the index would search them, from number `first` to `last`."""
        return [(key, self.watcher.words_at(*where)) for key, *where in self._places(first, last)]

    def _places(self, first: int, last: int) -> list[Any]:
        with self._index.reading() as connection:
            return connection.execute(
                "SELECT key, source, file, place, length FROM episodes WHERE NOT live ORDER BY n LIMIT ? OFFSET ?",
                (last - first, first),
            ).fetchall()

    def _describe(self, source: Source, count: int) -> Answer:
        progress = self.watcher.progress[source.slug]
        problem = progress.problem
        if progress.broken:
            problem = (
                f"{progress.broken} broken lines are left out" if progress.broken > 1 else "a broken line is left out"
            )
        return {
            "slug": source.slug,
            "kind": source.kind,
            "name": source.name,
            "title": self._title(source),
            "parent": source.parent,
            "episodes": count,
            "live": progress.live,
            "planned": progress.planned,
            "indexed": 1.0 if progress.size == 0 else min(1.0, progress.reached / progress.size),
            "problem": problem,
        }

    def _title(self, source: Source) -> str:
        """The label of an arm; the name of anything else."""
        parent = self.watcher.source(source.parent) if source.parent is not None else None
        return source.name if parent is None else label_of(source, parent)

    def _find(self, key: str) -> tuple[Answer, Source]:
        with self._index.reading() as connection:
            place = query.find_row(connection, key)
        source = self.watcher.source(place["source"]) if place is not None else None
        if place is None or source is None:
            raise NotThere(f"there is no episode {key[:200]}: it may have ended in the meantime")
        return place, source

    def _file(self, source: Source, name: str) -> Path:
        file = source.path / name
        if not inside(file, source.root):
            raise NotThere(f"{name} no longer exists")
        return file

    def _journal(self, source: Source, name: str) -> Sequence[Mapping[str, Any]]:
        entries = read_journal(source.path / "journal" / f"{name}.jsonl", source.root)
        if not entries:
            raise NotThere("this episode has ended: look for it in the list")
        return entries

    def _evaluated(self, source: Source, place: Answer, found: Answer) -> Answer | None:
        """What the evaluation that a run belongs to says about an episode."""
        parent = self.watcher.source(source.parent) if source.parent is not None else None
        if parent is None or place["live"]:
            return None
        try:
            return evaluated(parent, source.path.name, found, self._keys(parent))
        except DatasetError:
            return None

    def _keys(self, source: Source) -> Mapping[tuple[str, str], str]:
        arms = {one.slug: one.path.name for one in self.watcher.sources if one.parent == source.slug}
        marks = ", ".join("?" * len(arms))
        with self._index.reading() as connection:
            rows = connection.execute(
                f"SELECT source, id, key FROM episodes WHERE source IN ({marks}) AND NOT live", list(arms)
            ).fetchall()
        return {(arms[slug], name): key for slug, name, key in rows}

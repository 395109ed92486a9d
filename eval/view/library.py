"""All answers that the viewer gives, for the web server and for the files of a static copy alike."""

from __future__ import annotations

import secrets
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gumshoe.errors import ConfigError, DatasetError
from gumshoe.eval.masks import Masks
from gumshoe.eval.score.metrics import changed_lines, first_right_rank
from gumshoe.eval.view.catalog import Catalog, CatalogEntry
from gumshoe.eval.view.episode_page import cap, episode_page, root_of, tried_decisions
from gumshoe.eval.view.episodes import conversation_in, read_line, read_row
from gumshoe.eval.view.evaluation_pages import EvaluationPages, arm_label, read_results
from gumshoe.eval.view.rows import REPORTED
from gumshoe.eval.view.sources import GoldPatches, Source
from gumshoe.records import Trajectory

Answer = dict[str, Any]
ROWS = 2_000
"""The most rows in one answer."""
SIBLINGS = 50
SCORE = "reciprocal_rank"
"""The measure of an evaluation that tells a hit from a miss: 0 if no location holds a line of the gold patch."""


class NotThere(DatasetError):
    """There is nothing at this address."""


@contextmanager
def open_library(paths: Sequence[Path], gold: GoldPatches, model: Path | None = None) -> Generator[Library]:
    """What there is to see in some folders. Its catalog is empty until it is refreshed or started.

    Masks are made with the tokenizer of the `model`. Raises ConfigError if there is nothing to be seen, or no such
    folder.
    """
    if model is not None and not model.is_dir():
        raise ConfigError(f"there is no model folder {model}: gumshoe train makes one")
    masks = Masks(model) if model is not None else None
    catalog = Catalog(paths)
    try:
        yield Library(catalog, gold, masks)
    finally:
        catalog.close()
        if masks is not None:
            masks.close()


class Library:
    """What there is to see. `masks` knows which tokens train; it is None if no model was given."""

    def __init__(self, catalog: Catalog, gold: GoldPatches, masks: Masks | None) -> None:
        self.catalog = catalog
        self._gold = gold
        self._masks = masks
        self._started = secrets.token_hex(4)

    def overview(self) -> Answer:
        """Every source with how far it has been read; `version` changes when anything does."""
        return {
            "version": self.catalog.version,
            "searchable": self.catalog.ready,
            "masks": self._masks is not None,
            "sources": [self._describe(source) for source in self.catalog.sources],
        }

    def rows(self, era: str, known: int, limit: int = ROWS) -> Answer:
        """The next rows of the list, `limit` at most, with everything that is known of each.

        The caller has `known` rows, the `last` of an earlier answer, whose `era` it gives; in another era, the rows
        start over, and `first` says so. `live` are all episodes in progress.
        """
        now = f"{self._started}.{self.catalog.era}"
        known = known if era == now else 0
        entries = self.catalog.entries(known, limit)
        return {
            "era": now,
            "first": known == 0,
            "last": known + len(entries),
            "more": len(entries) == limit,
            "rows": self._rows_of(entries),
            "live": self._rows_of(self.catalog.live()),
        }

    def search(self, text: str) -> Answer:
        """The keys of the episodes in which `text` is found."""
        return {"keys": self.catalog.search(text)}

    def episode(self, key: str) -> Answer:
        """One episode, whole but for overlong texts. Raises NotThere and DatasetError."""
        entry = self._find(key)
        source = entry.source
        gold = None if entry.live else self._gold.find(entry.row.task, source)
        episode = self.catalog.episode(entry)
        found = episode_page(episode, gold, kind=source.kind, live=entry.live)
        siblings = self.catalog.episodes_on(entry.row.task) if entry.row.task else []
        if source.kind == "dataset":
            found["stop"] = entry.row.stop
        return {
            "key": key,
            "kind": source.kind,
            "live": entry.live,
            "row": self._rows_of([entry])[0],
            "siblings": self._rows_of(siblings[:SIBLINGS]),
            "tree": self._tree(entry, siblings),
            **cap({**found, "evaluated": self._evaluation_of(entry, episode, gold)}),
        }

    def raw(self, key: str) -> bytes:
        """The stored JSON of a finished trajectory, as it is. Raises NotThere and DatasetError."""
        entry = self._find(key)
        if entry.source.kind != "run" or entry.live:
            raise NotThere("only finished trajectories are stored as JSON")
        return read_line(self.catalog.file(entry), entry.place, entry.length)

    def mask(self, key: str) -> Answer:
        """Which tokens of a dataset's row train. Raises NotThere and DatasetError."""
        entry = self._find(key)
        if self._masks is None or entry.source.kind != "dataset":
            raise NotThere("the mask needs a model's tokenizer: start with --model FOLDER")
        row = read_row(self.catalog.file(entry), entry.place)
        answer = self._masks.compute({**row, "messages": conversation_in(row)})
        shown = {name: answer[name] for name in ("parts", "tokens", "trained")}
        return {"model": self._masks.model.name, **cap(shown)}

    def evaluation(self, slug: str) -> Answer:
        """The figures of an evaluation. Raises NotThere and DatasetError."""
        return self._pages(self._evaluation(slug)).evaluation()

    def task(self, slug: str, task: str) -> Answer:
        """One task of an evaluation. Raises NotThere and DatasetError."""
        source = self._evaluation(slug)
        found = self._pages(source).task(task, self._gold.find(task, source))
        first = next((key for one in found["attempts"] if (key := one["key"] or one["solver_key"]) is not None), None)
        messages = self.catalog.episode(self._find(first)).messages if first is not None else ()
        asked = next((message.content for message in messages if message.role == "user"), "")
        return {**found, "prompt": asked}

    def _find(self, key: str) -> CatalogEntry:
        entry = self.catalog.entry(key)
        if entry is None:
            raise NotThere(f"there is no episode {key[:200]}: it may have ended in the meantime")
        return entry

    def _evaluation(self, slug: str) -> Source:
        source = self.catalog.source(slug)
        if source is None or source.kind != "evaluation":
            raise NotThere(f"there is no evaluation {slug}")
        return source

    def _describe(self, source: Source) -> Answer:
        state = self.catalog.state(source)
        running = sum(entry.source.slug == source.slug for entry in self.catalog.live())
        problem = state.problem
        if state.broken:
            problem = f"{state.broken} broken lines are left out" if state.broken > 1 else "a broken line is left out"
        parent = self.catalog.source(source.parent)
        return {
            "slug": source.slug,
            "kind": source.kind,
            "name": source.name,
            "title": source.name if parent is None else arm_label(source, parent),
            "parent": source.parent,
            "episodes": len(self.catalog.episodes_in(source)) + running,
            "live": state.live,
            "planned": state.planned,
            "indexed": 1.0 if state.size == 0 else min(1.0, state.reached / state.size),
            "problem": problem,
        }

    def _rows_of(self, entries: Iterable[CatalogEntry]) -> list[Answer]:
        """Rows as they are sent to the page: arms go by their labels, and a report is a hit or a miss if that is known.

        Both are decided late: task sources and evaluations may be known later than the episodes.
        """
        ranks: dict[str, _Ranks] = {}
        shown: list[Answer] = []
        for entry in entries:
            source = entry.source
            if source.slug not in ranks:
                ranks[source.slug] = _Ranks(source, self.catalog.source(source.parent), self._gold)
            ranked = ranks[source.slug]
            row = {name: value for name, value in vars(entry.row).items() if name != "locations"}
            row |= {"key": entry.key, "source": source.slug, "kind": source.kind, "live": entry.live}
            row["policy"] = ranked.label or entry.row.policy
            rank = ranked.rank(entry) if entry.row.outcome == REPORTED else None
            if rank is not None:
                row["outcome"] = "hit" if rank else "miss"
                row["facts"] = {**entry.row.facts, "first hit": rank or None}
            shown.append(row)
        return shown

    def _tree(self, entry: CatalogEntry, siblings: Sequence[CatalogEntry]) -> list[Answer]:
        """What else was tried at the steps of a finished episode; nothing for one that is not in a tree."""
        if entry.source.kind != "run" or entry.live:
            return []
        members = {one.row.id: one for one in siblings if one.source == entry.source and not one.live}
        branches = [one.row for one in members.values() if "branch of" in one.row.facts]
        parents = {row.id: str(row.facts["branch of"]) for row in branches}
        root = root_of(entry.row.id, parents)
        found = [one for name, one in members.items() if root_of(name, parents) == root]
        if len(found) < 2:
            return []
        shown = {row["id"]: row for row in self._rows_of(found)}
        return tried_decisions(entry.row.id, (self.catalog.episode(one) for one in found), shown)

    def _evaluation_of(self, entry: CatalogEntry, episode: Trajectory, gold: str | None) -> Answer | None:
        """What the evaluation that a run belongs to says about an episode."""
        parent = self.catalog.source(entry.source.parent)
        if parent is None or entry.live:
            return None
        try:
            return self._pages(parent).episode(entry.source.path.name, episode, gold)
        except DatasetError:
            return None

    def _pages(self, evaluation: Source) -> EvaluationPages:
        runs = [run for run in self.catalog.sources if run.parent == evaluation.slug]
        keys = {(run.path.name, entry.row.id): entry.key for run in runs for entry in self.catalog.episodes_in(run)}
        return EvaluationPages(evaluation, keys)


class _Ranks:
    """Where in their lists the reports of one source name a line of the gold patch."""

    def __init__(self, source: Source, evaluation: Source | None, gold: GoldPatches) -> None:
        self.label = arm_label(source, evaluation) if evaluation is not None else None
        self._gold = gold.finder(source)
        self._scored: dict[str, float | None] = {}
        if evaluation is not None:
            try:
                results = read_results(evaluation)
            except DatasetError:
                return
            arm = source.path.name
            self._scored = {
                one.trajectory: one.scores[SCORE] for one in results if one.arm == arm and SCORE in one.scores
            }

    def rank(self, entry: CatalogEntry) -> int | None:
        """The rank of the first location that holds a line of the gold patch, from 1; 0 if none does; None: unknown."""
        score = self._scored.get(entry.row.id)
        if score is not None:
            return round(1 / score) if score > 0 else 0
        wanted = changed_lines(self._gold(entry.row.task))
        if not wanted or entry.row.locations is None:
            return None
        return first_right_rank(entry.row.locations, wanted) or 0

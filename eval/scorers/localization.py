"""How well the reported locations cover the lines that the gold patch touches."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence, Set
from functools import lru_cache
from typing import Literal

from gumshoe.collect.packs import Gold, Overlap, clean_path, lines_overlap
from gumshoe.env.diff import gold_lines
from gumshoe.errors import TaskError
from gumshoe.eval.scorers.sources import Sources
from gumshoe.records import ContextPack, Location, Oracle, Score, Trajectory
from gumshoe.tools.code.functions import MODULE, Span, enclosing

__all__ = [
    "Level",
    "Localization",
    "Measure",
    "ReciprocalRank",
    "adherence",
    "changed_lines",
    "first_right_rank",
    "gold_of",
    "locations_of",
]

Level = Literal["file", "function", "line"]
Measure = Literal["precision", "recall", "f1"]


class Localization:
    """Precision, recall or F1 of a pack's locations against the gold patch, in files, functions or lines.

    An episode that ended without a pack handed over nothing: recall and F1 are 0, precision is None. A task whose
    gold patch touches no line of an existing file is unscored; so are functions where the source cannot be read.
    """

    def __init__(self, level: Level, measure: Measure, sources: Sources) -> None:
        self.name = f"{level}_{measure}"
        self._level: Level = level
        self._measure: Measure = measure
        self._sources = sources

    def score(self, trajectory: Trajectory, oracle: Oracle) -> Score:
        """Reads the trajectory's pack and the gold patch. Raises TaskError if that is not a patch."""
        gold = gold_of(oracle)
        found = self._overlap(locations_of(trajectory), gold, trajectory.task.id) if gold else None
        if found is None:
            return Score(name=self.name, value=None, explanation="the gold patch gives nothing to compare with")
        return Score(
            name=self.name, value=getattr(found, self._measure), explanation=_explain(found, self._level, trajectory)
        )

    def _overlap(self, locations: Sequence[Location], gold: Gold, task_id: str) -> Overlap | None:
        if self._level == "line":
            return lines_overlap(locations, gold)
        if self._level == "file":
            return _sets_overlap({clean_path(location.path) for location in locations}, set(gold))
        found = {path: self._sources.spans(task_id, path) for path in gold}
        if any(of_file is None for of_file in found.values()):
            return None
        wanted = {(path, enclosing(found[path] or (), line)) for path, lines in gold.items() for line in lines}
        named = {name for location in locations for name in self._functions_in(location, task_id)}
        return _sets_overlap(named, wanted)

    def _functions_in(self, location: Location, task_id: str) -> set[tuple[str, str]]:
        path = clean_path(location.path)
        return {(path, name) for name in _touched(self._sources.spans(task_id, path) or (), location)}


class ReciprocalRank:
    """1 / rank of the first location that holds a gold line; 0 where none does, or nothing was handed over."""

    name = "reciprocal_rank"

    def score(self, trajectory: Trajectory, oracle: Oracle) -> Score:
        """Reads the trajectory's pack and the gold patch. Raises TaskError if that is not a patch."""
        gold = gold_of(oracle)
        if not gold:
            return Score(name=self.name, value=None, explanation="the gold patch gives nothing to compare with")
        rank = first_right_rank(locations_of(trajectory), gold)
        return Score(
            name=self.name,
            value=0.0 if rank is None else 1 / rank,
            explanation="no location holds a gold line" if rank is None else f"location {rank} is right",
        )


def first_right_rank(locations: Iterable[Location], gold: Gold) -> int | None:
    """The rank, from 1, of the first location that holds a gold line; None where none does."""
    for rank, location in enumerate(locations, start=1):
        if any(line in location.lines for line in gold.get(clean_path(location.path), ())):
            return rank
    return None


def adherence(pack: ContextPack | None, patch: str) -> float | None:
    """1.0 if the patch changes a line of a reported location, else 0.0; None without locations or without a patch.

    An insertion counts as a change of the line before it, as `gold_lines` has it.
    """
    changed = changed_lines(patch) if patch.strip() else None
    if pack is None or not pack.locations or changed is None:
        return None
    return float(first_right_rank(pack.locations, changed) is not None)


def gold_of(oracle: Oracle) -> dict[str, set[int]]:
    """The lines that the gold patch touches, by file. Raises TaskError if it is not a patch."""
    return {path: lines for path, lines in gold_lines(oracle.gold_patch).items() if lines}


@lru_cache(maxsize=512)
def changed_lines(patch: str | None) -> Gold | None:
    """The lines that any patch changes, by path; None if it is not known or not a patch."""
    if patch is None:
        return None
    try:
        return gold_lines(patch)
    except TaskError:
        return None


def locations_of(trajectory: Trajectory) -> tuple[Location, ...]:
    """The locations that were handed over; none without a pack."""
    return trajectory.context_pack.locations if trajectory.context_pack is not None else ()


def _sets_overlap(named: Set[Hashable], gold: Set[Hashable]) -> Overlap:
    return Overlap(len(named), len(gold), len(named & gold))


def _touched(found: tuple[Span, ...], location: Location) -> set[str]:
    """The innermost functions and classes that a range of lines runs through.

    The innermost one changes only where a function begins or ends, so it is enough to look there.
    """
    edges = {location.start} | {line for span in found for line in (span.start, span.end + 1)}
    names = {enclosing(found, line) for line in edges if line in location.lines}
    return names - {MODULE} or names


def _explain(found: Overlap, level: Level, trajectory: Trajectory) -> str:
    if trajectory.context_pack is None:
        return "nothing was reported"
    return f"{found.shared} of {found.gold} {level}s, {found.named} named"

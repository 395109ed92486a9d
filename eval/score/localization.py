"""How well the reported locations cover the lines that the gold patch touches."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence, Set
from functools import lru_cache

from gumshoe.collect.packs import Gold, Overlap, clean_path, lines_overlap
from gumshoe.env.diff import gold_lines
from gumshoe.errors import TaskError
from gumshoe.eval.score.conduct import stated_confidence
from gumshoe.eval.score.sources import Sources
from gumshoe.records import ContextPack, Location, Oracle, Trajectory
from gumshoe.tools.code.functions import MODULE, Span, enclosing

__all__ = [
    "adherence",
    "changed_lines",
    "first_right_rank",
    "localization_of",
    "locations_of",
]


def localization_of(trajectory: Trajectory, oracle: Oracle, sources: Sources) -> dict[str, float | None]:
    """The pack's locations against the gold patch, in files, functions and lines.

    `reciprocal_rank` is 1 / rank of the first location that holds a gold line, 0 if none does. `brier` is the squared
    difference between the confidence that was stated with the report and whether its first location holds a gold line:
    0 is best, always saying 0.5 gives 0.25, None if none was stated.

    An episode that ended without a pack handed over nothing: recall, F1 and reciprocal rank are 0, precision is None. A
    task whose gold patch touches no line of an existing file is unscored, and so are functions if the source cannot be
    read. Raises TaskError if the gold patch is not a patch.
    """
    gold = {path: lines for path, lines in gold_lines(oracle.gold_patch).items() if lines}
    places = locations_of(trajectory)
    lines = lines_overlap(places, gold)
    files = _sets_overlap({clean_path(place.path) for place in places}, gold.keys())
    functions = _functions_overlap(places, gold, trajectory.task.id, sources)
    rank = first_right_rank(places, gold)
    confidence = stated_confidence(trajectory)
    return {
        "file_recall": files.recall,
        "function_recall": None if functions is None else functions.recall,
        "line_precision": lines.precision if gold else None,
        "line_recall": lines.recall,
        "line_f1": lines.f1,
        "reciprocal_rank": None if not gold else 0.0 if rank is None else 1 / rank,
        "brier": None if confidence is None or not gold else (confidence - (rank == 1)) ** 2,
    }


def _functions_overlap(places: Sequence[Location], gold: Gold, task_id: str, sources: Sources) -> Overlap | None:
    """The innermost functions and classes, or modules, of the locations and of the gold lines."""
    found = {path: sources.spans(task_id, path) for path in gold}
    if any(of_file is None for of_file in found.values()):
        return None
    wanted = {(path, enclosing(found[path] or (), line)) for path, lines in gold.items() for line in lines}
    named = {
        (path, name)
        for place in places
        for path in [clean_path(place.path)]
        for name in _innermost_names(sources.spans(task_id, path) or (), place)
    }
    return _sets_overlap(named, wanted)


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


def _innermost_names(found: tuple[Span, ...], location: Location) -> set[str]:
    """The innermost functions and classes that a range of lines runs through.

    The innermost one changes only where a function begins or ends, so it is enough to look there.
    """
    edges = {location.start} | {line for span in found for line in (span.start, span.end + 1)}
    names = {enclosing(found, line) for line in edges if line in location.lines}
    return names - {MODULE} or names

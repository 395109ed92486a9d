"""Rows as the list shows them: a seeker's report is a hit or a miss, and an arm of an evaluation goes by its label.

Both are decided when the rows are sent: task sources and evaluations may be known later than the episodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gumshoe.errors import DatasetError
from gumshoe.eval.scorers.localization import changed_lines, first_right_rank
from gumshoe.eval.view.evaluations import arm_labels, read_results
from gumshoe.eval.view.facts import REPORTED
from gumshoe.eval.view.gold_patches import GoldPatches
from gumshoe.eval.view.sources import ARMS, Kind, Source
from gumshoe.records import Location

__all__ = ["label_of", "shown_rows"]

SCORE = "reciprocal_rank"
"""The measure of an evaluation that tells a hit from a miss: 0 where no location holds a line of the gold patch."""


@dataclass(frozen=True)
class _Origin:
    """What the rows of one source have in common."""

    kind: Kind
    label: str | None
    scored: Mapping[str, float | None]
    gold: Callable[[str], str | None]


def shown_rows(rows: Sequence[Mapping[str, Any]], sources: Sequence[Source], gold: GoldPatches) -> list[dict[str, Any]]:
    """The rows of the index as they are sent to the page.

    The outcome of an episode that ended with a report becomes `hit` where one of its locations holds a line that the
    gold patch changes, else `miss`; it stays `reported` where neither the evaluation nor the gold patch is known.
    `first hit` is the rank of that location, from 1.

    Args:
        rows: as `query` returns them.
        sources: every source that there is.
        gold: knows the gold patches.
    """
    origins: dict[str, _Origin] = {}
    shown: list[dict[str, Any]] = []
    for row in rows:
        slug = row["source"]
        if slug not in origins:
            origins[slug] = _origin_of(slug, sources, gold)
        shown.append(_shown(row, origins[slug]))
    return shown


def label_of(source: Source, evaluation: Source) -> str:
    """What an arm of an evaluation, or its solver, is called."""
    name = source.path.name
    label = arm_labels(evaluation).get(name, name)
    return label if ARMS in source.path.relative_to(evaluation.path).parts else f"{label} (solver)"


def _origin_of(slug: str, sources: Sequence[Source], gold: GoldPatches) -> _Origin:
    source = next((one for one in sources if one.slug == slug), None)
    if source is None:
        return _Origin("run", None, {}, lambda _: None)
    evaluation = next((one for one in sources if one.slug == source.parent), None)
    if evaluation is None:
        return _Origin(source.kind, None, {}, gold.finder(source))
    return _Origin(source.kind, label_of(source, evaluation), _scored(source, evaluation), gold.finder(source))


def _scored(source: Source, evaluation: Source) -> Mapping[str, float | None]:
    """How the evaluation scored the reports of an arm, by the id of the trajectory."""
    try:
        results = read_results(evaluation)
    except DatasetError:
        return {}
    return {one.trajectory: one.scores[SCORE] for one in results if one.arm == source.path.name and SCORE in one.scores}


def _shown(row: Mapping[str, Any], origin: _Origin) -> dict[str, Any]:
    shown = {name: value for name, value in row.items() if name != "locations"}
    shown["kind"] = origin.kind
    shown["policy"] = origin.label or row["policy"]
    if row["outcome"] != REPORTED or row["locations"] is None:
        return shown
    rank = _rank(row, origin)
    if rank is not None:
        shown["outcome"] = "hit" if rank else "miss"
        shown["facts"] = {**row["facts"], "first hit": rank or None}
    return shown


def _rank(row: Mapping[str, Any], origin: _Origin) -> int | None:
    """The rank of the first location that holds a line of the gold patch; 0 where none does; None: not known."""
    score = origin.scored.get(row["id"])
    if score is not None:
        return round(1 / score) if score > 0 else 0
    wanted = changed_lines(origin.gold(row["task"]))
    if not wanted:
        return None
    locations = (Location.model_construct(path=path, start=start, end=end) for path, start, end in row["locations"])
    return first_right_rank(locations, {path: set(lines) for path, lines in wanted.items()}) or 0

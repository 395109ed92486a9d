"""How well the named lines match the target lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

from gumshoe.records import Location

__all__ = ["Gold", "Overlap", "clean_path", "lines_overlap"]

Gold = Mapping[str, Set[int]]
"""Lines by file."""


@dataclass(frozen=True)
class Overlap:
    """How what was named agrees with what was to be found, as counts."""

    named: int
    gold: int
    shared: int

    @property
    def precision(self) -> float | None:
        """Share of the named lines that are right; None if nothing was named."""
        return self.shared / self.named if self.named else None

    @property
    def recall(self) -> float | None:
        """Share of the gold lines that were named; None if there was nothing to be found."""
        return self.shared / self.gold if self.gold else None

    @property
    def f1(self) -> float | None:
        """Harmonic mean of both; 0 where nothing was named, None where there was nothing to be found."""
        return 2 * self.shared / (self.named + self.gold) if self.gold else None


def lines_overlap(locations: Iterable[Location], gold: Gold) -> Overlap:
    """How the lines of `locations` agree with `gold`. A line named twice counts once.

    Works on ranges: a location of a billion lines costs no more than one of two.
    """
    ranges: dict[str, list[Location]] = {}
    for location in locations:
        ranges.setdefault(clean_path(location.path), []).append(location)
    shared = sum(
        any(line in place.lines for place in ranges.get(path, ())) for path, lines in gold.items() for line in lines
    )
    named = sum(_union_length(places) for places in ranges.values())
    return Overlap(named, sum(map(len, gold.values())), shared)


def clean_path(path: str) -> str:
    """The path without a leading `./`: `./cart.py` and `cart.py` are one file."""
    while path.startswith("./"):
        path = path[2:].lstrip("/")
    return path


def _union_length(places: Iterable[Location]) -> int:
    total, reached = 0, 0
    for place in sorted(places, key=lambda place: place.start):
        total += max(0, place.end - max(reached, place.start - 1))
        reached = max(reached, place.end)
    return total

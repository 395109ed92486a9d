"""SWE-Explore's measures within a budget of lines, with the lines that the gold patch touches as the relevant ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import log2
from typing import Literal, get_args

from gumshoe.eval.scorers.localization import Gold, clean_path, gold_of, lines_overlap, locations_of
from gumshoe.records import Location, Oracle, Score, Trajectory

__all__ = ["BUDGETS", "MEASURES", "LineBudget", "LinesNamed", "ndcg_within", "within"]

BudgetMeasure = Literal["ndcg", "recall", "efficiency"]
MEASURES: tuple[BudgetMeasure, ...] = get_args(BudgetMeasure)
BUDGETS = (100, 300, 500)


class LineBudget:
    """What the first `budget` lines of a pack are worth, its locations read in their order.

    `ndcg` compares the order of the locations with their best order; it says nothing about what was not named.
    `recall` is the share of the relevant lines that are among the first `budget` lines, a line named twice counting
    twice against the budget. `efficiency` (context efficiency) is the share of those lines that is relevant; like any
    precision, it is None if nothing was named.
    """

    def __init__(self, measure: BudgetMeasure, budget: int) -> None:
        self.name = f"{measure}@{budget}"
        self._measure: BudgetMeasure = measure
        self._budget = budget

    def score(self, trajectory: Trajectory, oracle: Oracle) -> Score:
        """Reads the trajectory's pack and the gold patch. Raises TaskError if that is not a patch."""
        gold = gold_of(oracle)
        if not gold:
            return Score(name=self.name, value=None, explanation="the gold patch gives nothing to compare with")
        locations = locations_of(trajectory)
        if self._measure == "ndcg":
            return Score(name=self.name, value=ndcg_within(locations, gold, self._budget))
        found = lines_overlap(within(locations, self._budget), gold)
        return Score(name=self.name, value=found.recall if self._measure == "recall" else found.precision)


class LinesNamed:
    """How many lines were named, each counted once."""

    name = "lines_named"

    def score(self, trajectory: Trajectory, oracle: Oracle) -> Score:
        """Reads the trajectory's pack alone."""
        return Score(name=self.name, value=lines_overlap(locations_of(trajectory), {}).named)


def within(locations: Iterable[Location], budget: int) -> list[Location]:
    """The first `budget` lines of `locations`; the last of them may be cut short."""
    kept: list[Location] = []
    for place in locations:
        if budget <= 0:
            break
        kept.append(place.model_copy(update={"end": min(place.end, place.start + budget - 1)}))
        budget -= len(kept[-1].lines)
    return kept


def ndcg_within(locations: Sequence[Location], gold: Gold, budget: int) -> float:
    """Discounted gain of `locations` in order, as a share of the gain if sorted by relevant lines per line; 0 to 1.

    The gain of a location is the number of relevant lines in it. Locations count up to the first that does not fit
    into `budget` lines as a whole; the very first always counts.
    """
    sizes = [
        (sum(line in place.lines for line in gold.get(clean_path(place.path), ())), len(place.lines))
        for place in locations
    ]
    best = _discounted(sorted(sizes, key=lambda size: size[0] / size[1], reverse=True), budget)
    return min(_discounted(sizes, budget) / best, 1.0) if best else 0.0


def _discounted(sizes: Iterable[tuple[int, int]], budget: int) -> float:
    total, used = 0.0, 0
    for rank, (gain, lines) in enumerate(sizes, start=1):
        used += lines
        if used > budget and rank > 1:
            break
        total += gain / log2(rank + 1)
    return total

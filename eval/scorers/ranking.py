"""Acc@k, and precision, recall and F1 by set, over the files, modules and functions that an explorer names.

A module is a class or function at the top of a file, a function is what `edited_functions` counts: both are LocAgent's
words and LocAgent's rule. A task whose gold patch edits no existing function is unscored, as with LocAgent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

from gumshoe.eval.scorers.edited import edited_functions, function_of
from gumshoe.eval.scorers.localization import Measure, Overlap, clean_path, locations_of
from gumshoe.eval.scorers.sources import Sources
from gumshoe.records import Location, Oracle, Score, Trajectory
from gumshoe.tools.spans import Span

__all__ = [
    "ACC",
    "LEVELS",
    "Acc",
    "Edited",
    "ListLength",
    "RankLevel",
    "Ranked",
    "Rankings",
    "acc_at",
    "ranked_by_function",
]

RankLevel = Literal["file", "module", "function"]
LEVELS: tuple[RankLevel, ...] = get_args(RankLevel)
ACC: tuple[tuple[RankLevel, int], ...] = (
    *(("file", k) for k in (1, 3, 5)),
    *(("module", k) for k in (5, 10)),
    *(("function", k) for k in (1, 5, 10)),
)
UNSCORED = "the gold patch edits no existing function that can be read"


@dataclass(frozen=True)
class Ranked:
    """Names at each level, best first: `path`, `path:Class` or `path:function`, `path:Class.method`."""

    file: tuple[str, ...] = ()
    module: tuple[str, ...] = ()
    function: tuple[str, ...] = ()


class Rankings:
    """What was named and what was to be found, for the scorers below.

    Args:
        sources: the files before the repair.
        given: by task id, the rankings of an explorer that ranks each level separately; without one, the order is that
            of the pack's locations, and of what their lines run through.
    """

    def __init__(self, sources: Sources, given: Mapping[str, Ranked] | None = None) -> None:
        self._sources = sources
        self._given = given or {}
        self._edited = lru_cache(maxsize=4096)(self._read_edited)

    def gold(self, task_id: str, oracle: Oracle) -> Ranked | None:
        """Files, modules and functions of what the patch edits. None where the task is unscored."""
        functions = self._edited(task_id, oracle.gold_patch)
        return ranked_by_function(functions) if functions else None

    def named(self, trajectory: Trajectory) -> Ranked:
        """What an episode handed over; nothing where it ended without a pack."""
        found = self._given.get(trajectory.task.id)
        if found is not None and trajectory.context_pack is not None:
            return found
        locations, task = locations_of(trajectory), trajectory.task.id
        names = [name for place in locations for name in self._names(task, place)]
        files = dict.fromkeys(clean_path(place.path) for place in locations)
        return Ranked(tuple(files), ranked_by_function(names).module, tuple(dict.fromkeys(names)))

    def _names(self, task_id: str, place: Location) -> list[str]:
        path = clean_path(place.path)
        spans = self._sources.spans(task_id, path) or ()
        return [f"{path}:{name}" for name in _touched(spans, place)]

    def _read_edited(self, task_id: str, patch: str) -> tuple[str, ...] | None:
        return edited_functions(patch, lambda path: self._sources.text(task_id, path))


class Acc:
    """Whether all that the patch edits is among the first `k` names: 1 or 0.

    Where the patch edits more than `k`, all of the first `k` have to be edited ones.
    """

    def __init__(self, level: RankLevel, k: int, rankings: Rankings) -> None:
        self.name = f"{level}_acc@{k}"
        self._level: RankLevel = level
        self._k = k
        self._rankings = rankings

    def score(self, trajectory: Trajectory, oracle: Oracle) -> Score:
        """Reads the trajectory's pack and the gold patch. Raises TaskError if that is not a patch."""
        gold = self._rankings.gold(trajectory.task.id, oracle)
        if gold is None:
            return Score(name=self.name, value=None, explanation=UNSCORED)
        named = getattr(self._rankings.named(trajectory), self._level)
        return Score(name=self.name, value=acc_at(named, getattr(gold, self._level), self._k))


class Edited:
    """Precision, recall or F1 of the modules or functions that were named, as sets, whatever their order."""

    def __init__(self, level: Literal["module", "function"], measure: Measure, rankings: Rankings) -> None:
        self.name = f"edited_{level}_{measure}"
        self._level = level
        self._measure: Measure = measure
        self._rankings = rankings

    def score(self, trajectory: Trajectory, oracle: Oracle) -> Score:
        """Reads the trajectory's pack and the gold patch. Raises TaskError if that is not a patch."""
        gold = self._rankings.gold(trajectory.task.id, oracle)
        if gold is None:
            return Score(name=self.name, value=None, explanation=UNSCORED)
        named = set(getattr(self._rankings.named(trajectory), self._level))
        wanted = set(getattr(gold, self._level))
        found = Overlap(len(named), len(wanted), len(named & wanted))
        return Score(name=self.name, value=getattr(found, self._measure))


class ListLength:
    """How many files, modules or functions were named: Acc@k rewards long lists, F1 short ones."""

    def __init__(self, level: RankLevel, rankings: Rankings) -> None:
        self.name = f"{level}s_named"
        self._level = level
        self._rankings = rankings

    def score(self, trajectory: Trajectory, oracle: Oracle) -> Score:
        """Reads the trajectory's pack alone."""
        return Score(name=self.name, value=len(getattr(self._rankings.named(trajectory), self._level)))


def acc_at(named: Iterable[str], gold: Iterable[str], k: int) -> float:
    """1 where the first `k` of `named`, each counted once, hold as many of `gold` as they could; else 0."""
    first, wanted = list(dict.fromkeys(named))[:k], set(gold)
    return float(len(wanted.intersection(first)) == min(len(wanted), k))


def ranked_by_function(functions: Iterable[str]) -> Ranked:
    """The functions with their modules and files, each in the order of first mention."""
    names = [name.split(":", 1) for name in functions]
    modules = dict.fromkeys(f"{path}:{name.partition('.')[0]}" for path, name in names)
    return Ranked(tuple(dict.fromkeys(path for path, _ in names)), tuple(modules), tuple(dict.fromkeys(functions)))


def _touched(found: tuple[Span, ...], place: Location) -> list[str]:
    """The class or function whose exact lines a location gives; else the functions that it runs through, in order.

    If it runs through no function, the classes that it runs through.
    """
    whole = next((span for span in found if (span.start, span.end) == (place.start, place.end)), None)
    if whole is not None:
        return [whole.name if whole.is_class else function_of(found, whole.start) or whole.name]
    met = [span for span in found if span.start <= place.end and place.start <= span.end]
    functions = (function_of(found, max(span.start, place.start)) for span in met if not span.is_class)
    names = list(dict.fromkeys(name for name in functions if name is not None))
    return names or [span.name for span in met][-1:]

"""Acc@k over the files and functions that an explorer names, by LocAgent's rule, which SweRank and CodeScout share.

A function is what `edited_functions` counts. A task whose gold patch edits no existing function is unscored, as with
LocAgent.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

from unidiff.patch import Hunk, Line

from gumshoe.collect.packs import clean_path
from gumshoe.env.diff import apply_hunks, parse_patch, relocate
from gumshoe.errors import TaskError
from gumshoe.eval.score.sources import Sources
from gumshoe.records import Location, Oracle, Trajectory
from gumshoe.tools.code.functions import Span, spans

__all__ = ["ACC", "acc_at", "accuracy_of", "edited_functions", "functions_at", "locations_of"]

ACC = (("file", 1), ("file", 5), ("function", 1), ("function", 5))


def accuracy_of(trajectory: Trajectory, oracle: Oracle, sources: Sources) -> dict[str, float | None]:
    """Acc@k at each level: what was handed over is ranked by the order of the pack's locations.

    None if the gold patch edits no existing function that can be read. Raises TaskError if that is not a patch.
    """
    task_id, places = trajectory.task.id, locations_of(trajectory)
    edited = _edited_in(sources, task_id, oracle.gold_patch)
    if not edited:
        return {f"{level}_acc@{k}": None for level, k in ACC}
    gold = {"file": [name.partition(":")[0] for name in edited], "function": edited}
    named = {
        "file": [clean_path(place.path) for place in places],
        "function": [name for place in places for name in functions_at(place, task_id, sources)],
    }
    return {f"{level}_acc@{k}": acc_at(named[level], gold[level], k) for level, k in ACC}


@lru_cache(maxsize=4096)
def _edited_in(sources: Sources, task_id: str, patch: str) -> tuple[str, ...] | None:
    return edited_functions(patch, lambda path: sources.text(task_id, path))


def functions_at(place: Location, task_id: str, sources: Sources) -> list[str]:
    """What a location names, as `path:function`: the functions that its lines run through, or a class."""
    path = clean_path(place.path)
    return [f"{path}:{name}" for name in _outermost_names(sources.spans(task_id, path) or (), place)]


def locations_of(trajectory: Trajectory) -> tuple[Location, ...]:
    """The locations that were handed over; none without a pack."""
    return trajectory.context_pack.locations if trajectory.context_pack is not None else ()


def acc_at(named: Iterable[str], gold: Iterable[str], k: int) -> float:
    """Whether all of `gold` is among the first `k` of `named`, each counted once: 1 or 0.

    If `gold` has more than `k`, all of the first `k` have to be among them.
    """
    first, wanted = list(dict.fromkeys(named))[:k], set(gold)
    return float(len(wanted.intersection(first)) == min(len(wanted), k))


def _outermost_names(found: tuple[Span, ...], place: Location) -> list[str]:
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


def edited_functions(patch: str, read: Callable[[str], str | None]) -> tuple[str, ...] | None:
    """The existing functions that `patch` edits, each as `path:name`, in the order of the patch.

    A function counts when the patch removes or adds a line in it that is neither blank, nor a comment, nor an import.
    Functions that the patch adds do not count, nor do lines of a class or a module outside of any function. A nested
    function belongs to the one around it.

    Args:
        patch: a unified diff.
        read: gives the text of a file before the patch; None where it cannot be read.

    Returns:
        None where a Python file that the patch changes cannot be read or parsed, or the patch does not fit it.

    Raises:
        TaskError: `patch` is not a unified diff.
    """
    found: dict[str, None] = {}
    for file in parse_patch(patch):
        if file.source is None or not file.source.endswith(".py") or not file.hunks:
            continue
        before = read(file.source)
        if before is None:
            return None
        file = relocate(file, before)
        try:
            old, new = _Code.parse(before), _Code.parse(apply_hunks(file, before))
        except TaskError:
            return None
        if old is None or new is None:
            return None
        for line in (line for hunk in file.hunks for line in _changed(hunk)):
            code, number = (old, line.source_line_no) if line.is_removed else (new, line.target_line_no)
            name = code.function(number or 0)
            if name is not None and name in old.functions:
                found[f"{file.source}:{name}"] = None
    return tuple(found)


def function_of(found: tuple[Span, ...], line: int) -> str | None:
    """The outermost function around `line`, methods with their class; None outside of any function."""
    return next((span.name for span in found if not span.is_class and span.start <= line <= span.end), None)


class _Code:
    """Which function each line of a Python file belongs to."""

    def __init__(self, found: tuple[Span, ...], imports: set[int]) -> None:
        self._spans = found
        self._imports = imports
        self.functions = {span.name for span in found if not span.is_class}

    @classmethod
    def parse(cls, text: str) -> _Code | None:
        """Parses a file's text; None if it is no Python that can be parsed here."""
        found = spans(text)
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        if found is None:
            return None
        nodes = (node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom)))
        return cls(found, {line for node in nodes for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)})

    def function(self, line: int) -> str | None:
        """The function that a line belongs to; None for an import, or outside of any function."""
        return None if line in self._imports else function_of(self._spans, line)


def _changed(hunk: Hunk) -> Iterator[Line]:
    for line in hunk:
        text = line.value.strip()
        if (line.is_added or line.is_removed) and text and not text.startswith("#"):
            yield line

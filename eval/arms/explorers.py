"""Other explorers' answers as packs and rankings: a list of places, and the answers of CodeScout and FastContext."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gumshoe.eval.scorers.ranking import Ranked
from gumshoe.eval.scorers.sources import Sources
from gumshoe.records import ContextPack, Location
from gumshoe.storage import parse_json

__all__ = ["FORMATS", "AnswerFormat", "ExplorerAnswer", "NameLookup"]

CITATION = re.compile(r"^\s*(?:[-*]\s*)?`?(?P<path>[^\s:`]+):(?P<start>\d+)(?:-(?P<end>\d+))?`?", re.MULTILINE)
FINAL = re.compile(r"<final_answer>(.*?)(?:</final_answer>|\Z)", re.DOTALL)
PLACE = re.compile(r"(?P<path>[^:]+)(?::(?:(?P<start>\d+)(?:-(?P<end>\d+))?|(?P<name>[^\d\W][\w.]*)))?")


@dataclass(frozen=True)
class ExplorerAnswer:
    """What an explorer named; `ranked` if it ranks by names alone."""

    pack: ContextPack
    ranked: Ranked | None = None


class NameLookup:
    """Finds classes and functions in the files of a task before the repair."""

    def __init__(self, sources: Sources, task_id: str) -> None:
        self._sources = sources
        self._task_id = task_id

    def place(self, path: str, name: str = "") -> Location:
        """Where the class or function is; the file's first line where there is none, or `name` is empty."""
        span = next((span for span in self._spans(path) if span.name == name), None)
        start, end = (1, 1) if span is None else (span.start, span.end)
        return Location(path=path, start=start, end=end, symbol=name or None)

    def _spans(self, path: str) -> Sequence[Any]:
        return self._sources.spans(self._task_id, path) or ()


def _codescout(given: Any, lookup: NameLookup) -> ExplorerAnswer:
    """The arguments of `localization_finish`, or its `locations`: file, class_name and function_name of each."""
    given = parse_json(given) if isinstance(given, str) else given
    items = given.get("locations") if isinstance(given, Mapping) else given
    files: list[str] = []
    functions: list[str] = []
    places: list[Location] = []
    for item in items if isinstance(items, list) else ():
        if not (isinstance(item, Mapping) and isinstance(item.get("file"), str)):
            continue
        path = item["file"]
        outer, function = ([name] if isinstance(name, str) and name else [] for name in _pair(item))
        files.append(path)
        functions += [f"{path}:{'.'.join((*outer, name))}" for name in function]
        places.append(lookup.place(path, ".".join((*outer, *function))))
    ranked = Ranked(tuple(dict.fromkeys(files)), tuple(dict.fromkeys(functions)))
    return ExplorerAnswer(ContextPack(locations=tuple(places)), ranked)


def _pair(item: Mapping[str, Any]) -> tuple[Any, Any]:
    return item.get("class_name"), item.get("function_name")


def _fastcontext(given: Any, lookup: NameLookup) -> ExplorerAnswer:
    """The last `<final_answer>`: one `path:start-end` per line. Other lines are left out."""
    answers = FINAL.findall(given) if isinstance(given, str) else []
    found = CITATION.finditer(answers[-1]) if answers else ()
    spans = [(match["path"], int(match["start"]), int(match["end"] or match["start"])) for match in found]
    places = (Location(path=path, start=start, end=end) for path, start, end in spans if 1 <= start <= end)
    return ExplorerAnswer(ContextPack(locations=tuple(places)))


def _places(row: Mapping[str, Any], lookup: NameLookup) -> ExplorerAnswer:
    """`locations`, best first: `path`, `path:12`, `path:12-20` or `path:Class.method`, or objects as in a pack.

    Whatever else a pack holds, such as `findings`, may stand beside them.
    """
    given = row["locations"]
    if not isinstance(given, list):
        raise ValueError("locations is not a list")
    places = [_place(item, lookup) if isinstance(item, str) else item for item in given]
    facts = {name: value for name, value in row.items() if name in ContextPack.model_fields}
    return ExplorerAnswer(ContextPack.model_validate({**facts, "locations": places}))


def _place(text: str, lookup: NameLookup) -> Location:
    match = PLACE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not path, path:line, path:start-end or path:name")
    if match["start"] is None:
        return lookup.place(match["path"], match["name"] or "")
    return Location(path=match["path"], start=int(match["start"]), end=int(match["end"] or match["start"]))


@dataclass(frozen=True)
class AnswerFormat:
    """How one kind of answer is read.

    Args:
        column: what a line must have, besides the task's name.
        read: makes an answer from a line, or from its column `answer` if that is the column. Raises ValueError.
    """

    column: str
    read: Callable[[Any, NameLookup], ExplorerAnswer]


FORMATS: Mapping[str, AnswerFormat] = {
    "codescout": AnswerFormat("answer", _codescout),
    "fastcontext": AnswerFormat("answer", _fastcontext),
    "places": AnswerFormat("locations", _places),
}

"""Other explorers' answers, in the formats that they write, as packs and rankings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gumshoe.eval.config import AnswerFormat
from gumshoe.eval.scorers.ranking import Ranked, ranked_by_function
from gumshoe.eval.scorers.sources import Sources
from gumshoe.records import ContextPack, Location
from gumshoe.storage import parse_json

__all__ = ["FORMATS", "AnswerReader", "ExplorerAnswer", "NameLookup"]

CITATION = re.compile(r"^\s*(?:[-*]\s*)?`?(?P<path>[^\s:`]+):(?P<start>\d+)(?:-(?P<end>\d+))?`?", re.MULTILINE)
FINAL = re.compile(r"<final_answer>(.*?)(?:</final_answer>|\Z)", re.DOTALL)
PLACE = re.compile(r"(?P<path>[^:]+)(?::(?:(?P<start>\d+)(?:-(?P<end>\d+))?|(?P<name>[^\d\W][\w.]*)))?")


@dataclass(frozen=True)
class ExplorerAnswer:
    """What an explorer named; `ranked` if it ranks files, modules and functions separately, or by names alone."""

    pack: ContextPack
    ranked: Ranked | None = None


class NameLookup:
    """Finds classes and functions in the files of a task before the repair."""

    def __init__(self, sources: Sources, task_id: str) -> None:
        self._sources = sources
        self._task_id = task_id

    def has(self, path: str, name: str) -> bool:
        """Whether the file defines a function or class of that qualified name."""
        return any(span.name == name for span in self._spans(path))

    def place(self, path: str, name: str = "") -> Location:
        """Where the class or function is; the file's first line where there is none, or `name` is empty."""
        span = next((span for span in self._spans(path) if span.name == name), None)
        start, end = (1, 1) if span is None else (span.start, span.end)
        return Location(path=path, start=start, end=end, symbol=name or None)

    def _spans(self, path: str) -> Sequence[Any]:
        return self._sources.spans(self._task_id, path) or ()


def _locagent(row: Mapping[str, Any], lookup: NameLookup) -> ExplorerAnswer:
    """`found_files`, `found_modules` and `found_entities`, ranked separately; the pack has the entities first."""
    files, modules, functions = (_texts(row, key) for key in ("found_files", "found_modules", "found_entities"))
    names = [_split(name) for name in dict.fromkeys((*functions, *modules))]
    deeper = {(path, name.rpartition(".")[0]) for path, name in names}
    places = [lookup.place(*name) for name in names if name not in deeper or ":".join(name) in functions]
    seen = {path for path, _ in names}
    alone = (lookup.place(path) for path in dict.fromkeys(files) if path not in seen)
    return ExplorerAnswer(ContextPack(locations=(*places, *alone)), Ranked(files, modules, functions))


def _swerank(row: Mapping[str, Any], lookup: NameLookup) -> ExplorerAnswer:
    """`docs`: functions, best first, as `path/file.py/Class/method`."""
    functions: list[str] = []
    for doc in _texts(row, "docs"):
        path, found, name = doc.partition(".py/")
        if not found or not name.strip("/"):
            raise ValueError(f"{doc!r} in docs is not path/file.py/function")
        functions.append(f"{path}.py:{name.strip('/').replace('/', '.')}")
    places = tuple(lookup.place(*_split(name)) for name in dict.fromkeys(functions))
    return ExplorerAnswer(ContextPack(locations=places), ranked_by_function(functions))


def _agentless(row: Mapping[str, Any], lookup: NameLookup) -> ExplorerAnswer:
    """`found_files` in their order, with the classes, functions and lines of `found_edit_locs` in each.

    Files that these say nothing about fall back to `found_related_locs`. Several samples are read one after another.
    """
    files = _texts(row, "found_files")
    places: list[Location] = []
    for index, path in enumerate(files):
        texts = list(_texts_of(row.get("found_edit_locs"), path, index))
        texts = texts or list(_texts_of(row.get("found_related_locs"), path, index))
        found = [place for text in texts for place in _agentless_places(text, path, lookup)]
        places += dict.fromkeys(found) or [lookup.place(path)]
    return ExplorerAnswer(ContextPack(locations=tuple(places)))


def _texts_of(given: Any, path: str, index: int) -> Iterator[str]:
    """The lines about one file, in whichever way they are nested: by path, by sample, by position in found_files."""
    if isinstance(given, Mapping):
        yield from _strings(given.get(path))
    elif isinstance(given, list) and any(isinstance(sample, Mapping) for sample in given):
        for sample in given:
            yield from _texts_of(sample, path, index)
    elif isinstance(given, list):
        yield from _strings(given[index] if index < len(given) else None)
    elif given is not None and not isinstance(given, str):
        raise ValueError(f"{given!r} is not a list of what was found in each file")


def _agentless_places(text: str, path: str, lookup: NameLookup) -> Iterator[Location]:
    """`class: A`, `function: A.b` or `line: 12`, one per line; a method may follow the line of its class."""
    inside = ""
    for kind, _, name in (line.partition(":") for line in text.splitlines()):
        kind, name = kind.strip(), name.strip().removesuffix("()")
        if kind == "class" and "." not in name:
            inside = name
            yield lookup.place(path, name)
        elif kind in ("class", "function", "method") and name:
            method = f"{inside}.{name}"
            yield lookup.place(path, method if not lookup.has(path, name) and lookup.has(path, method) else name)
        elif kind == "line" and name.isdecimal() and int(name) > 0:
            yield Location(path=path, start=int(name), end=int(name))


def _codescout(given: Any, lookup: NameLookup) -> ExplorerAnswer:
    """The arguments of `localization_finish`, or its `locations`: file, class_name and function_name of each."""
    given = parse_json(given) if isinstance(given, str) else given
    items = given.get("locations") if isinstance(given, Mapping) else given
    files: list[str] = []
    modules: list[str] = []
    functions: list[str] = []
    places: list[Location] = []
    for item in items if isinstance(items, list) else ():
        if not (isinstance(item, Mapping) and isinstance(item.get("file"), str)):
            continue
        path = item["file"]
        outer, function = ([name] if isinstance(name, str) and name else [] for name in _pair(item))
        files.append(path)
        modules += [f"{path}:{name.partition('.')[0]}" for name in (*outer, *function)[:1]]
        functions += [f"{path}:{'.'.join((*outer, name))}" for name in function]
        places.append(lookup.place(path, ".".join((*outer, *function))))
    ranked = Ranked(*(tuple(dict.fromkeys(names)) for names in (files, modules, functions)))
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
    """`locations`, best first: `path`, `path:12`, `path:12-20` or `path:Class.method`, or objects as in a pack."""
    given = row["locations"]
    if not isinstance(given, list):
        raise ValueError("locations is not a list")
    places = [_place(item, lookup) if isinstance(item, str) else Location.model_validate(item) for item in given]
    return ExplorerAnswer(ContextPack(locations=tuple(places)))


def _place(text: str, lookup: NameLookup) -> Location:
    match = PLACE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not path, path:line, path:start-end or path:name")
    if match["start"] is None:
        return lookup.place(match["path"], match["name"] or "")
    return Location(path=match["path"], start=int(match["start"]), end=int(match["end"] or match["start"]))


def _pack(given: Any, lookup: NameLookup) -> ExplorerAnswer:
    return ExplorerAnswer(ContextPack.model_validate(given))


@dataclass(frozen=True)
class AnswerReader:
    """How one kind of answer is read.

    Args:
        columns: what a line must have, besides the task's name.
        read: makes an answer from a line, or from its column `answer` if that is all there is. Raises ValueError.
    """

    columns: tuple[str, ...]
    read: Callable[[Any, NameLookup], ExplorerAnswer]


FORMATS: Mapping[AnswerFormat, AnswerReader] = {
    "locagent": AnswerReader(("found_files", "found_modules", "found_entities"), _locagent),
    "swerank": AnswerReader(("docs",), _swerank),
    "agentless": AnswerReader(("found_files",), _agentless),
    "codescout": AnswerReader(("answer",), _codescout),
    "fastcontext": AnswerReader(("answer",), _fastcontext),
    "pack": AnswerReader(("answer",), _pack),
    "places": AnswerReader(("locations",), _places),
}


def _texts(row: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """A list of texts. Raises ValueError if it is anything else."""
    given = row[key]
    if isinstance(given, list) and any(isinstance(item, list) for item in given):
        raise ValueError(f"{key} holds several samples: merge them first")
    if not isinstance(given, list) or not all(isinstance(item, str) for item in given):
        raise ValueError(f"{key} is not a list of texts")
    return tuple(given)


def _strings(given: Any) -> Iterable[str]:
    """The texts in a text or a list. Raises ValueError if it is neither."""
    if given is not None and not isinstance(given, str | list):
        raise ValueError(f"{given!r} is neither a text nor a list of texts")
    return [text for text in ([given] if isinstance(given, str) else given or ()) if isinstance(text, str)]


def _split(name: str) -> tuple[str, str]:
    path, _, inner = name.partition(":")
    return path, inner

"""Packs to compare a seeker's with: one from the answer, one from reading alone, and other explorers' answers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from gumshoe.env.diff import gold_lines
from gumshoe.eval.scorers.sources import Sources
from gumshoe.protocols import Workspace
from gumshoe.records import ContextPack, Location, Oracle

__all__ = ["oracle_pack", "read_codescout", "read_fastcontext", "static_pack"]

CITATION = re.compile(r"^\s*(?:[-*]\s*)?`?(?P<path>[^\s:`]+):(?P<start>\d+)(?:-(?P<end>\d+))?`?", re.MULTILINE)
ANSWER = re.compile(r"<final_answer>(.*?)(?:</final_answer>|\Z)", re.DOTALL)
WORD = re.compile(r"[A-Za-z_]\w{2,}")
MOST_STATIC = 5


def oracle_pack(oracle: Oracle) -> ContextPack:
    """The lines that the gold patch touches: the most that any report could say about places."""
    gold = gold_lines(oracle.gold_patch)
    return ContextPack(
        locations=tuple(
            Location(path=path, start=line, end=line) for path, lines in sorted(gold.items()) for line in sorted(lines)
        )
    )


def static_pack(workspace: Workspace) -> ContextPack:
    """The functions that the problem statement names, found with grep alone: nothing is run.

    Functions whose name stands in the statement come first, by how often it does; at most five.
    """
    words = WORD.findall(workspace.task.problem_statement)
    found: list[tuple[int, Location]] = []
    matches, _ = workspace.grep(r"^\s*(async\s+)?(def|class)\s+\w+", limit=1000)
    for number, match in enumerate(matches):
        name = re.sub(r"^\s*(async\s+)?(def|class)\s+", "", match.text).partition("(")[0].partition(":")[0].strip()
        mentions = words.count(name)
        if mentions and match.path.endswith(".py") and not workspace.is_readonly(match.path):
            following = (other.line for other in matches[number + 1 :] if other.path == match.path)
            end = max(match.line, next(following, match.line + 30) - 1)
            found.append((-mentions, Location(path=match.path, start=match.line, end=end, symbol=name)))
    found.sort(key=lambda pair: (pair[0], pair[1].path, pair[1].start))
    return ContextPack(locations=tuple(location for _, location in found[:MOST_STATIC]))


def read_fastcontext(text: str) -> ContextPack:
    """The pack that FastContext's `<final_answer>` holds: one `path:start-end` a line. Other lines are left out."""
    answer = ANSWER.findall(text)
    if not answer:
        return ContextPack()
    return ContextPack(
        locations=tuple(
            Location(path=match["path"], start=start, end=end)
            for match in CITATION.finditer(answer[-1])
            for start, end in [(int(match["start"]), int(match["end"] or match["start"]))]
            if 1 <= start <= end
        )
    )


def read_codescout(arguments: Mapping[str, Any], sources: Sources, task_id: str) -> ContextPack:
    """The pack that CodeScout's `localization_finish` call holds: `locations` of file, class_name, function_name.

    Names are looked up in the task's files; a file alone, or a name that is not there, gives the file's first line.
    """
    given = arguments.get("locations")
    return ContextPack(
        locations=tuple(
            _named(item, sources, task_id)
            for item in (given if isinstance(given, list) else ())
            if isinstance(item, Mapping) and isinstance(item.get("file"), str)
        )
    )


def _named(item: Mapping[str, Any], sources: Sources, task_id: str) -> Location:
    path = str(item["file"])
    symbol = ".".join(_texts(item.get(key) for key in ("class_name", "function_name"))) or None
    spans = sources.spans(task_id, path) or ()
    span = next((span for span in spans if span.name == symbol), None)
    if span is None:
        return Location(path=path, start=1, end=1, symbol=symbol)
    return Location(path=path, start=span.start, end=span.end, symbol=symbol)


def _texts(values: Iterable[Any]) -> list[str]:
    return [value for value in values if isinstance(value, str) and value]

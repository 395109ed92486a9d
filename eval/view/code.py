"""The code that an observation showed, and the debugger's state in it, for the side panel."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

__all__ = ["code_of"]

_TITLE = re.compile(r"^(?P<path>\S+) (?P<start>\d+)-(?P<end>\d+) of \d+ lines?$")
_LINE = re.compile(r"^[* ] *(?P<number>\d+)(?: (?P<text>.*))?$")
_ENDED = re.compile(r"^(program ended with exit code|timed out, and could not be interrupted|restarted: )")
_STOP = re.compile(r"^> (?P<path>[^\s:]+):(?P<line>\d+) in (?P<function>\S+)")
_SOURCE = re.compile(r"^(?:->|  ) *(?P<number>\d+)(?: (?P<text>.*))?$")
MOST_LINES = 5_000
STOPPED = "stopped"


def code_of(tool: str, text: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """The data that the pane shows for an observation.

    `path` and `lines` (number, text) are code that was shown, `current` the line at which the program is stopped,
    `diff` a change that was made; `state`, `breakpoints` and `frames` are the debugger's, where it reported them.
    Empty values are left out.
    """
    if tool == "view":
        found = _viewed(text)
    elif tool == "pdb":
        found = _debugged(text, data)
    elif tool == "rewrite":
        found = {"path": data.get("path"), "diff": data.get("diff")} if data else _rewritten(text)
    else:
        found = {}
    return {name: value for name, value in found.items() if value not in (None, [], "")}


def _viewed(text: str) -> dict[str, Any]:
    first, *rest = text.split("\n")
    title = _TITLE.match(first)
    if title is None:
        return {}
    matches = [_LINE.match(line) for line in rest[:MOST_LINES]]
    lines = [[int(match["number"]), match["text"] or ""] for match in matches if match]
    marked = [line for match, line in zip(matches, rest, strict=False) if match and line.startswith("*")]
    numbers = [match["number"] for match in map(_LINE.match, marked) if match]
    path = title["path"]
    return {"path": path, "lines": lines, "marks": [int(number) for number in numbers]}


def _rewritten(text: str) -> dict[str, Any]:
    first, _, diff = text.partition("\n")
    if not first.startswith("rewrote "):
        return {}
    return {"path": first.removeprefix("rewrote ").strip(), "diff": diff}


def _debugged(text: str, data: Mapping[str, Any]) -> dict[str, Any]:
    if not data:
        return _read_stop(text)
    stop = data.get("stop")
    found: dict[str, Any] = {
        "breakpoints": [_breakpoint(one) for one in _objects(data.get("breakpoints"))],
        "frames": [_frame(one) for one in _objects(data.get("frames"))],
        "frame": data.get("index"),
        "state": data.get("state"),
    }
    if isinstance(stop, dict):
        source = stop.get("source")
        found |= {
            "path": stop.get("path"),
            "current": stop.get("line") if data.get("state") in (None, STOPPED) else None,
            "lines": [list(line) for line in source if isinstance(line, list | tuple) and len(line) == 2]
            if isinstance(source, list)
            else [],
            "reason": stop.get("reason"),
        }
    return found


def _read_stop(text: str) -> dict[str, Any]:
    """The last stop that the text reports, for when there is only the text, as in a dataset."""
    found: dict[str, Any] = {}
    for line in text.split("\n")[:MOST_LINES]:
        stop = _STOP.match(line)
        source = _SOURCE.match(line)
        if stop is not None:
            found = {"state": STOPPED, "path": stop["path"], "current": int(stop["line"]), "lines": []}
        elif _ENDED.match(line):
            found = {**found, "state": "exited", "current": None}
        elif source is not None and "lines" in found:
            found["lines"].append([int(source["number"]), source["text"] or ""])
    return found


def _breakpoint(one: Mapping[str, Any]) -> dict[str, Any]:
    names = ("path", "line", "condition", "temporary", "enabled", "hits")
    return {name: one[name] for name in names if one.get(name) not in (None, "")}


def _frame(one: Mapping[str, Any]) -> dict[str, Any]:
    values = one.get("local_values")
    return {
        "path": one.get("path"),
        "line": one.get("line"),
        "function": one.get("function"),
        "code": one.get("code"),
        "locals": [[name, value] for name, value in values.items()] if isinstance(values, dict) else [],
    }


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []

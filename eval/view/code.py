"""The code that an observation showed, and the debugger's state in it, for the side panel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["code_of"]

MOST_LINES = 5_000


def code_of(tool: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """The data that the pane shows for an observation; nothing for one without data, as in a dataset.

    `path` and `lines` (number, text) are code that was shown, `current` the line at which the program is stopped,
    `diff` a change that was made; `state`, `breakpoints` and `frames` are the debugger's, where it reported them.
    Empty values are left out.
    """
    if tool == "view":
        found = _viewed(data)
    elif tool == "pdb":
        found = _debugged(data)
    else:
        found = {"path": data.get("path"), "diff": data.get("diff")} if tool == "rewrite" else {}
    return {name: value for name, value in found.items() if value not in (None, [], "")}


def _viewed(data: Mapping[str, Any]) -> dict[str, Any]:
    start, lines = data.get("start"), data.get("lines")
    if not isinstance(start, int) or not isinstance(lines, list):
        return {}
    marks = data.get("breakpoints")
    return {
        "path": data.get("path"),
        "lines": [[start + number, str(line)] for number, line in enumerate(lines[:MOST_LINES])],
        "marks": marks if isinstance(marks, list) else [],
    }


def _debugged(data: Mapping[str, Any]) -> dict[str, Any]:
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
            "current": stop.get("line") if data.get("state") in (None, "stopped") else None,
            "lines": [list(line) for line in source if isinstance(line, list | tuple) and len(line) == 2]
            if isinstance(source, list)
            else [],
            "reason": stop.get("reason"),
        }
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

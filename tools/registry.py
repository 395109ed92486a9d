"""Tools by name: the built-in ones, those that other packages announce, and any by dotted path."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from gumshoe.errors import ConfigError
from gumshoe.protocols import Tool
from gumshoe.tools.base import FunctionTool

__all__ = ["BUILTIN", "ENTRY_POINT_GROUP", "make_tools", "tool_names"]

ENTRY_POINT_GROUP = "gumshoe.tools"

BUILTIN: dict[str, str] = {
    "listdir": "gumshoe.tools.listdir:ListDir",
    "view": "gumshoe.tools.view:View",
    "grep": "gumshoe.tools.grep:Grep",
    "eval": "gumshoe.tools.eval:Eval",
    "suspects": "gumshoe.tools.suspects:Suspects",
    "pdb": "gumshoe.tools.debug:Debug",
    "rewrite": "gumshoe.tools.rewrite:Rewrite",
    "bash": "gumshoe.tools.bash:Bash",
    "report": "gumshoe.tools.report:Report",
    "submit": "gumshoe.tools.submit:Submit",
}


def tool_names() -> list[str]:
    """The names that `make_tools` knows: built-in ones, then those of installed packages."""
    return list(dict.fromkeys([*BUILTIN, *_announced()]))


def make_tools(names: Iterable[str]) -> list[Tool]:
    """New tools, one for each name, in order.

    Args:
        names: built-in names, names that installed packages announce in the entry-point group `gumshoe.tools`, or
            dotted paths `package.module:attribute` of a `@tool` function or a tool class.

    Raises:
        ConfigError: a name is unknown or cannot be imported, is no tool, or stands for a name already taken.
    """
    tools: dict[str, Tool] = {}
    for name in names:
        made = _make(name)
        if made.name in tools:
            raise ConfigError(f"tool {made.name!r} is there twice: give each tool once")
        tools[made.name] = made
    return list(tools.values())


def _make(name: str) -> Tool:
    found = _find(name)
    if isinstance(found, type):
        found = found()
    elif isinstance(found, FunctionTool):
        found = found.copy()
    if not _is_tool(found):
        raise ConfigError(f"{name!r} is no tool: decorate a typed function with @gumshoe.tools.tool, or give a class")
    return found


def _find(name: str) -> Any:
    if name in BUILTIN:
        return _import(name, BUILTIN[name])
    announced = _announced()
    if name in announced:
        return _import(name, announced[name].value)
    if ":" in name:
        return _import(name, name)
    if "." in name:
        module, _, attribute = name.rpartition(".")
        return _import(name, f"{module}:{attribute}")
    nearest = difflib.get_close_matches(name, [*BUILTIN, *announced], n=1, cutoff=0.0)
    raise ConfigError(f"unknown tool {name!r}; did you mean {nearest[0]!r}? (or give a path, package.module:attribute)")


def _import(name: str, target: str) -> Any:
    module, _, attribute = target.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"tool {name!r} cannot be imported: {error}") from None


def _announced() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}


def _is_tool(found: Any) -> bool:
    wanted = ("name", "description", "parameters", "decision", "call", "on_reset", "on_edit", "on_eval", "close")
    return all(hasattr(found, attribute) for attribute in wanted)

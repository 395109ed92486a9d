"""Tools by name: the built-in ones, those that other packages announce, and any by dotted path."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from gumshoe.errors import ConfigError
from gumshoe.plugins import TOOLS, announced, load_named
from gumshoe.protocols import Tool
from gumshoe.records import Decision, ToolSchema
from gumshoe.tools.base import FunctionTool
from gumshoe.tools.mcp_tools import ToolServer, is_tool_server
from gumshoe.tools.toolbox import Toolbox

__all__ = [
    "BUILTIN",
    "DEBUG_TOOLS",
    "decisions_of",
    "make_toolbox",
    "make_tools",
    "tool_names",
    "with_reproduce",
]

BUILTIN: dict[str, str] = {
    "listdir": "gumshoe.tools.listdir:ListDir",
    "view": "gumshoe.tools.view:View",
    "grep": "gumshoe.tools.grep:Grep",
    "reproduce": "gumshoe.tools.reproduce:Reproduce",
    "eval": "gumshoe.tools.eval:Eval",
    "suspects": "gumshoe.tools.suspects:Suspects",
    "trace": "gumshoe.tools.trace:TraceFunction",
    "whatif": "gumshoe.tools.whatif:WhatIf",
    "vary": "gumshoe.tools.vary:Vary",
    "probe": "gumshoe.tools.probe:ProbeTool",
    "pdb": "gumshoe.tools.debug:Debug",
    "rewrite": "gumshoe.tools.rewrite:Rewrite",
    "bash": "gumshoe.tools.bash:Bash",
    "report": "gumshoe.tools.report:Report",
    "submit": "gumshoe.tools.submit:Submit",
}
DEBUG_TOOLS = ("listdir", "view", "grep", "eval", "suspects", "pdb", "rewrite", "submit")
"""Those of an agent that debugs, unless others are named."""


def with_reproduce(tools: Sequence[str]) -> tuple[str, ...]:
    """The tools for an issue that no test shows yet: `reproduce` comes before `eval`, if there is one."""
    if "eval" not in tools:
        return tuple(tools)
    before = tools.index("eval")
    return (*tools[:before], "reproduce", *tools[before:])


def decisions_of(schemas: Iterable[ToolSchema]) -> Mapping[str, Decision]:
    """The role of each tool by name: of those among `schemas` that know theirs, and of the built-in ones."""
    return {**_built_in_decisions(), **{tool.name: tool.decision for tool in schemas if tool.decision is not None}}


@cache
def _built_in_decisions() -> Mapping[str, Decision]:
    return {tool.name: tool.decision for tool in make_tools(BUILTIN)}


def tool_names() -> list[str]:
    """The names that `make_tools` knows: built-in ones, then those of installed packages."""
    return list({**BUILTIN, **announced(TOOLS)})


def make_tools(names: Iterable[str]) -> list[Tool]:
    """New tools, one for each name, in order.

    Args:
        names: built-in names, names that installed packages announce in the entry-point group `gumshoe.tools`, or
            paths `package.module:attribute` of a `@tool` function or a tool class.

    Raises:
        ConfigError: a name is unknown or cannot be imported, is no tool, or stands for a name already taken.
    """
    tools: dict[str, Tool] = {}
    for name in names:
        made = _make(name)
        if made.name in tools:
            raise ConfigError(f"tool {made.name!r} is listed twice: list each tool once")
        tools[made.name] = made
    return list(tools.values())


def make_toolbox(tools: Iterable[Tool | str]) -> Toolbox:
    """A toolbox of tools by name, tools as they are, in the order given, then those of servers.

    Raises:
        ConfigError: as `make_tools`; or an entry names no command of a server.
    """
    entries = list(tools)
    servers = [ToolServer(entry) for entry in entries if isinstance(entry, str) and is_tool_server(entry)]
    others = [entry for entry in entries if not (isinstance(entry, str) and is_tool_server(entry))]
    return Toolbox([make_tools([entry])[0] if isinstance(entry, str) else entry for entry in others], servers)


def _make(name: str) -> Tool:
    if is_tool_server(name):
        raise ConfigError(f"{name!r} cannot be used here: the tools of a server are known only in an episode")
    # Looking through all installed packages takes a tenth of a second.
    known = BUILTIN if name in BUILTIN else {**announced(TOOLS), **BUILTIN}
    found = load_named(name, "tool", known)
    if isinstance(found, FunctionTool):
        found = found.copy()
    if not _is_tool(found):
        raise ConfigError(
            f"{name!r} is not a tool: decorate a typed function with @gumshoe.tools.tool, or give a class"
        )
    return found


def _is_tool(found: Any) -> bool:
    wanted = ("name", "description", "parameters", "decision", "call", "on_reset", "on_edit", "on_eval", "close")
    return all(hasattr(found, attribute) for attribute in wanted)

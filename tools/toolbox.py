"""The tools of one episode: made by name, given calls, asked for observations."""

from __future__ import annotations

import difflib
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from gumshoe.errors import ConfigError, ToolFailure
from gumshoe.plugins import TOOLS, announced, load_named
from gumshoe.protocols import Tool, Workspace
from gumshoe.records import Decision, Edit, Failure, Observation, TestRun, ToolCall, ToolSchema
from gumshoe.text import clean, clean_json, cut
from gumshoe.tools.base import TEXT_LIMIT, BaseTool, FunctionTool
from gumshoe.tools.mcp import ToolServer, is_tool_server

__all__ = [
    "BUILTIN",
    "DEBUG_TOOLS",
    "Toolbox",
    "decisions_of",
    "make_toolbox",
    "make_tools",
    "tool_names",
    "with_reproduce",
]

BUILTIN: dict[str, str] = {
    "listdir": "gumshoe.tools.files:ListDir",
    "view": "gumshoe.tools.files:View",
    "grep": "gumshoe.tools.files:Grep",
    "reproduce": "gumshoe.tools.eval:Reproduce",
    "eval": "gumshoe.tools.eval:Eval",
    "suspects": "gumshoe.tools.suspects:Suspects",
    "trace": "gumshoe.tools.trace:TraceFunction",
    "whatif": "gumshoe.tools.whatif:WhatIf",
    "vary": "gumshoe.tools.whatif:Vary",
    "probe": "gumshoe.tools.probe:ProbeTool",
    "pdb": "gumshoe.tools.pdb:Debug",
    "rewrite": "gumshoe.tools.files:Rewrite",
    "bash": "gumshoe.tools.bash:Bash",
    "report": "gumshoe.tools.report:Report",
    "submit": "gumshoe.tools.report:Submit",
}
DEBUG_TOOLS = ("listdir", "view", "grep", "eval", "suspects", "pdb", "rewrite", "submit")
"""Those of an agent that debugs, unless others are named."""


class Toolbox:
    """Runs calls, and tells every tool of edits, test runs and new episodes.

    Args:
        tools: with distinct names.
        servers: MCP servers, whose tools are there from the first episode on.
        text_limit: characters an observation's text may have.

    Raises:
        ConfigError: two tools have the same name.
    """

    def __init__(
        self, tools: Sequence[Tool], servers: Sequence[ToolServer] = (), *, text_limit: int = TEXT_LIMIT
    ) -> None:
        self._own = tuple(tools)
        self._servers = tuple(servers)
        self.tools = _by_name(tools)
        self.text_limit = text_limit
        self.others_used = False
        """Whether a tool without snapshots was called: who brings one of another kind has not said what it keeps."""
        self.history: list[Observation] = []
        for tool in self._base_tools():
            tool.attach(self)

    @property
    def schemas(self) -> tuple[ToolSchema, ...]:
        """The tools as a model sees them."""
        return tuple(
            ToolSchema(name=tool.name, description=tool.description, parameters=tool.parameters, decision=tool.decision)
            for tool in self.tools.values()
        )

    @property
    def instructions(self) -> str:
        """What the tools want a prompt to say, one paragraph a tool."""
        return "\n".join(tool.instructions for tool in self._base_tools() if tool.instructions)

    def dispatch(self, call: ToolCall, workspace: Workspace) -> Observation:
        """Runs one call. A ToolFailure becomes an observation; every other exception is passed on.

        A KeyboardInterrupt ends what the tools have running; the next call begins anew.
        """
        started = time.perf_counter()
        edits_before = len(workspace.edits)
        try:
            tool = self._find(call)
            self.others_used |= not isinstance(tool, BaseTool)
            observation = tool.call(call.arguments, workspace)
        except ToolFailure as failure:
            observation = _failed(call.name, failure)
        except KeyboardInterrupt:
            self.close()  # Whatever was running would answer the next call.
            raise
        for edit in workspace.edits[edits_before:]:
            self.on_edit(edit, workspace)
        finished = self._finish(observation, time.perf_counter() - started)
        self.history.append(finished)
        return finished

    def _find(self, call: ToolCall) -> Tool:
        if call.parse_error is not None:
            raise ToolFailure("unreadable_call", f"the call could not be read: {call.parse_error}")
        tool = self.tools.get(call.name)
        if tool is None:
            nearest = difflib.get_close_matches(call.name, self.tools, n=1, cutoff=0.0)
            hint = f"Did you mean {nearest[0]!r}? " if nearest else ""
            known = ", ".join(self.tools)
            raise ToolFailure("unknown_tool", f"no tool {call.name!r}. {hint}Tools: {known}")
        return tool

    def _finish(self, observation: Observation, duration_s: float) -> Observation:
        text, truncated = cut(clean(observation.text), self.text_limit)
        data = {key: clean_json(value) for key, value in observation.data.items()}
        truncated = truncated or observation.truncated
        changes = {"text": text, "data": data, "truncated": truncated, "duration_s": duration_s}
        return observation.model_copy(update=changes)

    def marks(self, path: str) -> frozenset[int]:
        """Lines of a file that some tool has marked."""
        return frozenset[int]().union(*(tool.marks(path) for tool in self._base_tools()))

    def on_reset(self, workspace: Workspace) -> None:
        """Tells every tool that a new episode begins, and starts the servers anew.

        Raises:
            ConfigError: a server does not start, or has a tool whose name is taken.
        """
        self.others_used = False
        self.tools = {tool.name: tool for tool in self._own}
        self.history = []
        for server in self._servers:
            for tool in server.start(workspace):
                if tool.name in self.tools:
                    raise ConfigError(
                        f"tools: {server.entry!r} has a tool {tool.name!r}, but another tool has that name"
                    )
                self.tools[tool.name] = tool
        for tool in self.tools.values():
            tool.on_reset(workspace)

    def on_edit(self, edit: Edit, workspace: Workspace) -> None:
        """Tells every tool that a file was changed."""
        for tool in self.tools.values():
            tool.on_edit(edit, workspace)

    def on_eval(self, run: TestRun, workspace: Workspace) -> None:
        """Tells every tool that the tests were run."""
        for tool in self.tools.values():
            tool.on_eval(run, workspace)

    def snapshot(self, workspace: Workspace) -> dict[str, object]:
        """What the tools hold now, by name, for `restore`."""
        return {tool.name: tool.snapshot(workspace) for tool in self._base_tools()}

    def restore(self, states: Mapping[str, object], workspace: Workspace) -> None:
        """Makes the tools what they were at a snapshot of this episode, whose files are there again."""
        for tool in self._base_tools():
            if tool.name in states:
                tool.restore(states[tool.name], workspace)

    def is_whole(self, states: Mapping[str, object]) -> bool:
        """Whether `restore` brings back from this snapshot all that the tools held. No tool was called since."""
        known = {tool.name: tool for tool in self._base_tools()}
        return not self.others_used and all(known[name].is_whole(state) for name, state in states.items())

    def restart_others(self, workspace: Workspace) -> None:
        """Begins anew with the tools that have no snapshots, and with the servers. Raises as `on_reset`."""
        self.others_used = False
        for server in self._servers:
            server.start(workspace)
        for tool in self.tools.values():
            if not isinstance(tool, BaseTool):
                tool.on_reset(workspace)

    def close(self) -> None:
        """Closes every tool and server. Idempotent."""
        for each in (*self.tools.values(), *self._servers):
            each.close()

    def _base_tools(self) -> list[BaseTool]:
        return [tool for tool in self.tools.values() if isinstance(tool, BaseTool)]


def _failed(name: str, failure: ToolFailure) -> Observation:
    message = clean(failure.message)
    return Observation(tool=clean(name), text=f"error: {message}", failure=Failure(kind=failure.kind, message=message))


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
    return list(_by_name(_make(name) for name in names).values())


def make_toolbox(tools: Iterable[Tool | str]) -> Toolbox:
    """A toolbox of tools by name, tools as they are, in the order given, then those of servers.

    Raises:
        ConfigError: as `make_tools`; or an entry names no command of a server.
    """
    entries = list(tools)
    servers = [ToolServer(entry) for entry in entries if isinstance(entry, str) and is_tool_server(entry)]
    others = [entry for entry in entries if not (isinstance(entry, str) and is_tool_server(entry))]
    return Toolbox([_make(entry) if isinstance(entry, str) else entry for entry in others], servers)


def _by_name(tools: Iterable[Tool]) -> dict[str, Tool]:
    """The tools by name. Raises ConfigError if two have the same one."""
    found: dict[str, Tool] = {}
    for tool in tools:
        if tool.name in found:
            raise ConfigError(f"tool {tool.name!r} is listed twice: list each tool once")
        found[tool.name] = tool
    return found


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

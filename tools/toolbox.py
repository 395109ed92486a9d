"""The tools of one episode: made by name, given calls, asked for observations."""

from __future__ import annotations

import difflib
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

from gumshoe.errors import ConfigError, ToolFailure
from gumshoe.plugins import TOOLS, announced, load_named
from gumshoe.protocols import Workspace
from gumshoe.records import Decision, Edit, Failure, Observation, TestRun, ToolCall, ToolSchema
from gumshoe.text import clean, clean_json, cut
from gumshoe.tools.base import TEXT_LIMIT, BaseTool

if TYPE_CHECKING:
    from gumshoe.tools.mcp import ToolServer

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
"""Those of an agent that debugs, unless others are named; without any agent, those of an environment."""
REWRITE_TOOLS = ("listdir", "view", "grep", "eval", "suspects", "rewrite", "submit")
SEEKER_TOOLS = ("listdir", "view", "grep", "eval", "suspects", "trace", "whatif", "pdb", "report")
SERVERS = ("mcp:", "mcp-host:")
"""How the names of MCP servers begin, which stand for all of their tools."""


class Toolbox:
    """Runs calls, and tells every tool of edits, test runs and new episodes.

    Args:
        tools: with distinct names.
        servers: MCP servers, whose tools are there from the first episode on.

    Raises:
        ConfigError: two tools have the same name.
    """

    def __init__(self, tools: Sequence[BaseTool], servers: Sequence[ToolServer] = ()) -> None:
        self._own = tuple(tools)
        self._servers = tuple(servers)
        self.tools = _by_name(tools)
        self.history: list[Observation] = []
        for tool in tools:
            tool.events = self

    @property
    def schemas(self) -> tuple[ToolSchema, ...]:
        """The tools as a model sees them."""
        return tuple(
            ToolSchema(name=tool.name, description=tool.description, parameters=tool.parameters, decision=tool.decision)
            for tool in self.tools.values()
        )

    def dispatch(self, call: ToolCall, workspace: Workspace) -> Observation:
        """Runs one call. A ToolFailure becomes an observation; every other exception is passed on.

        A KeyboardInterrupt ends what the tools have running; the next call begins anew.
        """
        started = time.perf_counter()
        edits_before = len(workspace.edits)
        try:
            observation = self._find(call).call(call.arguments, workspace)
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

    def _find(self, call: ToolCall) -> BaseTool:
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
        text, truncated = cut(clean(observation.text), TEXT_LIMIT)
        data = {key: clean_json(value) for key, value in observation.data.items()}
        truncated = truncated or observation.truncated
        changes = {"text": text, "data": data, "truncated": truncated, "duration_s": duration_s}
        return observation.model_copy(update=changes)

    def marks(self, path: str) -> frozenset[int]:
        """Lines of a file that some tool has marked."""
        return frozenset[int]().union(*(tool.marks(path) for tool in self.tools.values()))

    def on_reset(self, workspace: Workspace) -> None:
        """Tells every tool that a new episode begins, and starts the servers anew.

        Raises:
            ConfigError: a server does not start, or has a tool whose name is taken.
        """
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
        return {tool.name: tool.snapshot(workspace) for tool in self.tools.values()}

    def restore(self, states: Mapping[str, object], workspace: Workspace) -> None:
        """Makes the tools what they were at a snapshot of this episode, whose files are there again."""
        for name, state in states.items():
            self.tools[name].restore(state, workspace)

    def is_whole(self, states: Mapping[str, object]) -> bool:
        """Whether `restore` brings back from this snapshot all that the tools held. No tool was called since."""
        return all(self.tools[name].is_whole(state) for name, state in states.items())

    def close(self) -> None:
        """Closes every tool and server. Idempotent."""
        for each in (*self.tools.values(), *self._servers):
            each.close()


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


def make_tools(names: Iterable[str]) -> list[BaseTool]:
    """New tools, one for each name, in order.

    Args:
        names: built-in names, names that installed packages announce in the entry-point group `gumshoe.tools`, or
            paths `package.module:attribute` of a `@tool` function or a tool class.

    Raises:
        ConfigError: a name is unknown or cannot be imported, is no tool, or stands for a name already taken.
    """
    return list(_by_name(_make(name) for name in names).values())


def make_toolbox(tools: Iterable[BaseTool | str]) -> Toolbox:
    """A toolbox of tools by name, tools as they are, in the order given, then those of servers.

    Raises:
        ConfigError: as `make_tools`; or an entry names no command of a server.
    """
    found: list[BaseTool] = []
    servers: list[ToolServer] = []
    for entry in tools:
        if not isinstance(entry, str):
            found.append(entry)
        elif entry.startswith(SERVERS):
            servers.append(_make_server(entry))
        else:
            found.append(_make(entry))
    return Toolbox(found, servers)


def _make_server(entry: str) -> ToolServer:
    if find_spec("mcp") is None:
        raise ConfigError(f"tools: {entry!r} needs another package: pip install 'gumshoe-debug[mcp]'")
    from gumshoe.tools.mcp import ToolServer

    return ToolServer(entry)


def _by_name(tools: Iterable[BaseTool]) -> dict[str, BaseTool]:
    """The tools by name. Raises ConfigError if two have the same one."""
    found: dict[str, BaseTool] = {}
    for tool in tools:
        if tool.name in found:
            raise ConfigError(f"tool {tool.name!r} is listed twice: list each tool once")
        found[tool.name] = tool
    return found


def _make(name: str) -> BaseTool:
    if name.startswith(SERVERS):
        raise ConfigError(f"{name!r} cannot be used here: the tools of a server are known only in an episode")
    # Looking through all installed packages takes a tenth of a second.
    known = BUILTIN if name in BUILTIN else {**announced(TOOLS), **BUILTIN}
    found = load_named(name, "tool", known)
    if not isinstance(found, BaseTool):
        raise ConfigError(
            f"{name!r} is not a tool: decorate a typed function with @gumshoe.tools.tool, or give a class"
        )
    return found

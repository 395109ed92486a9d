"""The tools of one episode: calls go in, observations come out."""

from __future__ import annotations

import difflib
import time
from collections.abc import Mapping, Sequence

from gumshoe.errors import ConfigError, ToolFailure
from gumshoe.protocols import Tool, Workspace
from gumshoe.records import Edit, Failure, Observation, TestRun, ToolCall, ToolSchema
from gumshoe.text import clean, clean_json
from gumshoe.tools.base import BaseTool
from gumshoe.tools.mcp_tools import ToolServer
from gumshoe.tools.text import TEXT_LIMIT, cut

__all__ = ["Toolbox"]


class Toolbox:
    """Runs calls, and tells every tool of edits, test runs and new episodes.

    Args:
        tools: with distinct names.
        servers: MCP servers, whose tools are there from the first episode on.
        text_limit: characters an observation's text may have.
    """

    def __init__(
        self, tools: Sequence[Tool], servers: Sequence[ToolServer] = (), *, text_limit: int = TEXT_LIMIT
    ) -> None:
        self._own = tuple(tools)
        self._servers = tuple(servers)
        self.tools: dict[str, Tool] = {tool.name: tool for tool in tools}
        if len(self.tools) != len(tools):
            raise ValueError("two tools in one toolbox have the same name")
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

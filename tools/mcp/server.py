"""The tools of an MCP server as tools of an agent: `mcp:COMMAND` in a list of tools, or `mcp-host:COMMAND`."""

from __future__ import annotations

import itertools
import shlex
import time
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue, ValidationError

from gumshoe import __version__
from gumshoe.errors import ConfigError, ToolFailure
from gumshoe.protocols import Workspace
from gumshoe.records import Decision, Edit, Observation, TestRun
from gumshoe.tools.mcp.links import HostLink, McpLink, SandboxLink, ServerEnded

if TYPE_CHECKING:
    from mcp import types

__all__ = ["ServerTool", "ToolServer", "is_tool_server"]

_IN_SANDBOX, _ON_HOST = "mcp:", "mcp-host:"
_START_TIMEOUT_S = 60.0
_MOST_PAGES = 100


def is_tool_server(entry: str) -> bool:
    """Whether an entry of a list of tools stands for an MCP server."""
    return entry.startswith((_IN_SANDBOX, _ON_HOST))


class ToolServer:
    """An MCP server that is started for each episode: in its sandbox, in the workspace, or on the host.

    A server that dies or exceeds a time limit is ended; the next call starts it anew.

    Args:
        entry: `mcp:COMMAND`, or `mcp-host:COMMAND` for a server on the host. No shell reads the command.

    Raises:
        ConfigError: the entry has no command, or the extra `mcp` is not installed.
    """

    def __init__(self, entry: str) -> None:
        self.entry = entry
        self._host = entry.startswith(_ON_HOST)
        try:
            self._argv = shlex.split(entry.partition(":")[2])
        except ValueError as error:
            raise ConfigError(f"tools: {entry!r} cannot be read: {error}") from None
        if not self._argv:
            raise ConfigError(f"tools: {entry!r} names no command")
        if find_spec("mcp") is None:
            raise ConfigError(f"tools: {entry!r} needs another package: pip install 'gumshoe-debug[mcp]'")
        self._link: McpLink | None = None
        self._ids = itertools.count(1)

    def start(self, workspace: Workspace) -> list[ServerTool]:
        """Starts the server anew; its tools.

        Raises:
            ConfigError: it does not start, does not answer as an MCP server does, or has no tools.
        """
        self.close()
        try:
            link = self._open(workspace)
            listed = self._list(link)
        except (ServerEnded, TimeoutError, ToolFailure) as error:
            self.close()
            why = str(error) or f"it gave no answer for {_START_TIMEOUT_S:g} s"
            raise ConfigError(f"tools: {self.entry!r} did not start: {why}") from None
        if not listed:
            self.close()
            raise ConfigError(f"tools: {self.entry!r} has no tools")
        return [ServerTool(self, tool) for tool in listed]

    def call(self, name: str, arguments: Mapping[str, JsonValue], workspace: Workspace) -> Observation:
        """Has the server carry out a call. Raises ToolFailure for one that fails, and where the server does."""
        from mcp import types

        timeout = workspace.task.limits.command_timeout_s
        try:
            link = self._link or self._open(workspace)
            params = {"name": name, "arguments": dict(arguments)}
            answer = self._ask(link, "tools/call", params, timeout)
            result = types.CallToolResult.model_validate(answer)
        except ServerEnded as error:
            self.close()
            raise ToolFailure("server_ended", f"the tool's server failed: {error}; the next call restarts it") from None
        except TimeoutError:
            self.close()
            message = f"timed out after {timeout:g} s: the tool's server was ended; the next call restarts it"
            raise ToolFailure("timed_out", message) from None
        except ValidationError:
            raise ToolFailure("bad_answer", "the tool's server gave an invalid result") from None
        text = "\n".join(map(_text, result.content))
        if result.isError:
            raise ToolFailure("tool_error", text or "the tool failed")
        return Observation(tool=name, text=text or "no output", data=result.structuredContent or {})

    def close(self) -> None:
        """Ends the server. Idempotent."""
        link, self._link = self._link, None
        if link is not None:
            link.close()

    def _open(self, workspace: Workspace) -> McpLink:
        """Starts the server and shakes hands."""
        link = HostLink(self._argv) if self._host else SandboxLink(workspace.sandbox, self._argv)
        try:
            self._shake_hands(link)
        except BaseException:
            link.close()
            raise
        self._link = link
        return link

    def _shake_hands(self, link: McpLink) -> None:
        from mcp import types
        from mcp.shared.version import SUPPORTED_PROTOCOL_VERSIONS

        hello = types.InitializeRequestParams(
            protocolVersion=types.LATEST_PROTOCOL_VERSION,
            capabilities=types.ClientCapabilities(),
            clientInfo=types.Implementation(name="gumshoe", version=__version__),
        )
        fields = hello.model_dump(mode="json", by_alias=True, exclude_none=True)
        answer = self._ask(link, "initialize", fields, _START_TIMEOUT_S)
        if answer.get("protocolVersion") not in SUPPORTED_PROTOCOL_VERSIONS:
            raise ServerEnded("it does not support any known version of the protocol")
        link.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def _list(self, link: McpLink) -> Sequence[types.Tool]:
        from mcp import types

        tools: list[types.Tool] = []
        params: dict[str, Any] = {}
        for _ in range(_MOST_PAGES):
            try:
                page = types.ListToolsResult.model_validate(self._ask(link, "tools/list", params, _START_TIMEOUT_S))
            except ValidationError:
                raise ServerEnded("its list of tools cannot be read") from None
            tools += page.tools
            if page.nextCursor is None:
                break
            params = {"cursor": page.nextCursor}
        return tools

    def _ask(self, link: McpLink, method: str, params: Mapping[str, Any], timeout: float) -> dict[str, Any]:
        """The result of a request. Raises ToolFailure where the server refuses it, and as `Link.receive`."""
        deadline = time.monotonic() + timeout
        number = next(self._ids)
        link.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        while True:
            message = link.receive(deadline - time.monotonic())
            if "method" in message:
                _answer(link, message)
            elif message.get("id") == number:
                break
        error, result = message.get("error"), message.get("result")
        if isinstance(error, dict):
            raise ToolFailure("tool_error", str(error.get("message")))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
        return result if isinstance(result, dict) else {}  # pyright: ignore[reportUnknownVariableType]


class ServerTool:
    """One tool of a server, as the server names, describes and defines it."""

    def __init__(self, server: ToolServer, tool: types.Tool) -> None:
        self.name = tool.name
        self.description = tool.description or ""
        self.parameters: dict[str, JsonValue] = tool.inputSchema
        self.decision = Decision.SEEK
        self._server = server

    def call(self, arguments: Mapping[str, JsonValue], workspace: Workspace) -> Observation:
        """Has the server carry out a call. Raises ToolFailure."""
        return self._server.call(self.name, arguments, workspace)

    def on_reset(self, workspace: Workspace) -> None:
        """The server is new, too."""

    def on_edit(self, edit: Edit, workspace: Workspace) -> None:
        """The server sees the files themselves."""

    def on_eval(self, run: TestRun, workspace: Workspace) -> None:
        """Nothing to do."""

    def close(self) -> None:
        """The server is closed by the toolbox."""


def _answer(link: McpLink, message: Mapping[str, Any]) -> None:
    """Answers what a server asks of us, which offer nothing; notifications need no answer."""
    if "id" not in message:
        return
    refusal = {"error": {"code": -32601, "message": "not offered"}}
    told = {"result": {}} if message["method"] == "ping" else refusal
    link.send({"jsonrpc": "2.0", "id": message["id"], **told})


def _text(block: types.ContentBlock) -> str:
    """A block of content as text; what is no text is named."""
    from mcp import types

    if isinstance(block, types.TextContent):
        return block.text
    if isinstance(block, types.EmbeddedResource) and isinstance(block.resource, types.TextResourceContents):
        return block.resource.text
    if isinstance(block, types.ResourceLink):
        return f"[resource {block.uri}]"
    return f"[{block.type}]"

"""The tools of an MCP server as tools of an agent: `mcp:COMMAND` in a list of tools, or `mcp-host:COMMAND`.

A server runs in the sandbox of an episode (`SandboxLink`) or on the host (`HostLink`). `ToolServer` speaks the protocol
with either, and `ServerTool` is one of its tools.
"""

from __future__ import annotations

import itertools
import json
import os
import shlex
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from typing import IO, TYPE_CHECKING, Any, Protocol

from pydantic import JsonValue, ValidationError

from gumshoe import __version__
from gumshoe.errors import ConfigError, ToolFailure
from gumshoe.protocols import Sandbox, Workspace
from gumshoe.records import Decision, Edit, Observation, TestRun
from gumshoe.text import cut_line, plain_text
from gumshoe.tools.runs.programs import PLAIN_OUTPUT, our_program

if TYPE_CHECKING:
    from mcp import types

__all__ = ["HostLink", "McpLink", "SandboxLink", "ServerEnded", "ServerTool", "ToolServer", "is_tool_server"]

_TAIL = 2000
_MOST_BYTES = 8 << 20
_GRACE_S = 2.0


class ServerEnded(Exception):
    """The server did not start, or runs no more; the message says why in one line."""


class McpLink(Protocol):
    """A running server."""

    def send(self, message: dict[str, Any]) -> None:
        """Sends a message, at the latest when the next one is waited for."""
        ...

    def receive(self, timeout: float) -> dict[str, Any]:
        """The next message of the server. Raises ServerEnded, and TimeoutError after `timeout` seconds."""
        ...

    def close(self) -> None:
        """Ends the server and what it started. Idempotent."""
        ...


class SandboxLink:
    """A server in a sandbox, started in the workspace. Raises SandboxError where the sandbox itself broke."""

    def __init__(self, sandbox: Sandbox, argv: Sequence[str]) -> None:
        carrier = [sandbox.python, *our_program(sandbox.support, "programs.mcp")]
        self._session = sandbox.open_session([*carrier, *argv], env=PLAIN_OUTPUT)
        self._unsent: list[Any] = []
        self._printed = ""

    def send(self, message: dict[str, Any]) -> None:
        """Keeps it for the next `receive`: the session answers each request once."""
        self._unsent.append(message)

    def receive(self, timeout: float) -> dict[str, Any]:
        """The next message."""
        messages, self._unsent = self._unsent, []
        reply = self._session.request({"messages": messages}, max(timeout, 0.0))
        self._printed = (self._printed + reply.output)[-_TAIL:]
        if reply.timed_out:
            raise TimeoutError
        found = (reply.message or {}).get("message")
        if isinstance(found, dict):
            return found
        raise ServerEnded(_why((reply.message or {}).get("ended"), self._printed))

    def close(self) -> None:
        """Ends all that runs in the session."""
        self._session.close()


class HostLink:
    """A server on this machine, with the few variables of the environment that the SDK gives to servers.

    Raises:
        ServerEnded: the program cannot be started.
    """

    def __init__(self, argv: Sequence[str]) -> None:
        from mcp.client.stdio import get_default_environment

        self._unsent: list[dict[str, Any]] = []
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the server
        try:
            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env={**get_default_environment(), **PLAIN_OUTPUT},
                start_new_session=True,
            )
        except OSError as error:
            self._errors.close()
            raise ServerEnded(f"{argv[0]}: {error.strerror}") from None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in, self._out = self._process.stdin, self._process.stdout
        self._timed_out = False

    def send(self, message: dict[str, Any]) -> None:
        """Keeps it for the next `receive`, which has a time limit."""
        self._unsent.append(message)

    def receive(self, timeout: float) -> dict[str, Any]:
        """The next message; lines that are no JSON object are left out. At the time limit the server is killed."""
        messages, self._unsent = self._unsent, []
        timer = threading.Timer(max(timeout, 0.0), self._stop)
        timer.start()
        try:
            self._in.write(b"".join(json.dumps(message).encode("ascii") + b"\n" for message in messages))
            self._in.flush()
            while (line := self._out.readline(_MOST_BYTES)).endswith(b"\n"):
                with suppress(ValueError, RecursionError):
                    found = json.loads(line)
                    if isinstance(found, dict):
                        return found
        except BrokenPipeError:
            line = b""
        finally:
            timer.cancel()
        if self._timed_out:
            raise TimeoutError
        raise ServerEnded("it wrote a line of more than 8 MiB") if line else self._ended()

    def _stop(self) -> None:
        self._timed_out = True
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        """To the server and its children."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def _ended(self) -> ServerEnded:
        try:
            how = f"it ended with exit code {self._process.wait(_GRACE_S)}"
        except subprocess.TimeoutExpired:
            how = "it closed its input or output"
        self._errors.seek(max(0, os.fstat(self._errors.fileno()).st_size - _TAIL))
        return ServerEnded(_why(how, self._errors.read().decode("utf-8", "replace")))

    def close(self) -> None:
        """Asks the server and its children to end, then kills them."""
        if self._errors.closed:
            return
        for number in (signal.SIGTERM, signal.SIGKILL):
            self._signal(number)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_GRACE_S)
        for file in (self._in, self._out, self._errors):
            with suppress(BrokenPipeError):
                file.close()


def _why(how: object, printed: str) -> str:
    """How a server ended, with the last line of what it said."""
    how = how if isinstance(how, str) else "it ended"
    last_line = plain_text(printed).strip().rpartition("\n")[2]
    return cut_line(f"{how}: {last_line}" if last_line else how)


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
    answer = {"result": {}} if message["method"] == "ping" else refusal
    link.send({"jsonrpc": "2.0", "id": message["id"], **answer})


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

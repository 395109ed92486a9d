"""The tools of an MCP server as tools of an agent: `mcp:COMMAND` in a list of tools, or `mcp-host:COMMAND`.

    ServerTool ──> ToolServer ──> Connection ──> ClientSession ──┬── HostLink ─────> the server, a process on the host
                                  (event loop    (of the SDK)    └── SandboxLink ──> programs.mcp, and the server as
                                   in a thread)                                      its child, in the sandbox

Importing this takes the extra `mcp`.
"""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager, suppress
from functools import partial
from typing import TypeVar

import anyio
from anyio import to_thread
from anyio.from_thread import start_blocking_portal
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp import ClientSession, McpError, StdioServerParameters, stdio_client, types
from mcp.shared.message import SessionMessage
from pydantic import JsonValue, ValidationError

from gumshoe import __version__
from gumshoe.errors import ConfigError, SandboxError, ToolFailure
from gumshoe.protocols import Sandbox, Workspace
from gumshoe.records import Observation, SessionReply
from gumshoe.text import cut_line, plain_text
from gumshoe.tools.base import BaseTool
from gumshoe.tools.runs.commands import PLAIN_OUTPUT, our_program

START_TIMEOUT_S = 60.0
_TAIL = 2000
_POLL_S = 0.5

Streams = tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]
"""What comes from a server, and what goes to it."""
T = TypeVar("T")


class ServerTool(BaseTool):
    """One tool of a server, as the server names, describes and defines it; the server checks its arguments."""

    changes_files = True

    def __init__(self, server: ToolServer, tool: types.Tool) -> None:  # Without a signature, which `super` would read.
        self.name = tool.name
        self.description = tool.description or ""
        self.parameters: dict[str, JsonValue] = tool.inputSchema
        self._server = server

    def call(self, arguments: Mapping[str, JsonValue], workspace: Workspace) -> Observation:
        """Has the server carry out a call. Raises ToolFailure."""
        return self._server.call(self.name, arguments, workspace)

    def snapshot(self, workspace: Workspace) -> object:
        """Whether the server was called: then it may hold what nobody can bring back."""
        return self._server.was_called

    def restore(self, state: bool, workspace: Workspace) -> None:
        """Has the next call start a server that was called anew."""
        if self._server.was_called:
            self._server.close()

    def is_whole(self, state: bool) -> bool:
        """Whether the server was not called."""
        return not state


class ToolServer:
    """An MCP server that is started for each episode: in its sandbox, in the workspace, or on the host.

    A server that dies or exceeds a time limit is ended; the next call starts it anew.

    Args:
        entry: `mcp:COMMAND`, or `mcp-host:COMMAND` for a server on the host. No shell reads the command.

    Raises:
        ConfigError: the entry has no command.
    """

    def __init__(self, entry: str) -> None:
        self.entry = entry
        try:
            self._argv = shlex.split(entry.partition(":")[2])
        except ValueError as error:
            raise ConfigError(f"tools: {entry!r} cannot be read: {error}") from None
        if not self._argv:
            raise ConfigError(f"tools: {entry!r} names no command")
        self._connection: Connection | None = None
        self.was_called = False
        """Whether this start of it was."""

    def start(self, workspace: Workspace) -> list[ServerTool]:
        """Starts the server anew; its tools.

        Raises:
            ConfigError: it does not start, does not answer as an MCP server does, or has no tools.
        """
        self.close()
        try:
            tools = self._connect(workspace).ask(_list_tools, START_TIMEOUT_S)
        except (ServerEnded, TimeoutError, ToolFailure) as error:
            self.close()
            why = str(error) or f"it gave no answer for {START_TIMEOUT_S:g} s"
            raise ConfigError(f"tools: {self.entry!r} did not start: {why}") from None
        if not tools:
            self.close()
            raise ConfigError(f"tools: {self.entry!r} has no tools")
        return [ServerTool(self, tool) for tool in tools]

    def call(self, name: str, arguments: Mapping[str, JsonValue], workspace: Workspace) -> Observation:
        """Has the server carry out a call. Raises ToolFailure for one that fails, and if the server does."""
        timeout = workspace.task.limits.command_timeout_s
        try:
            connection = self._connection or self._connect(workspace)
            self.was_called = True
            result = connection.ask(lambda session: session.call_tool(name, dict(arguments)), timeout)
        except ServerEnded as error:
            self.close()
            raise ToolFailure("server_ended", f"the tool's server failed: {error}; the next call restarts it") from None
        except TimeoutError:
            self.close()
            message = f"timed out after {timeout:g} s: the tool's server was ended; the next call restarts it"
            raise ToolFailure("timed_out", message) from None
        text = "\n".join(map(_text, result.content))
        if result.isError:
            raise ToolFailure("tool_error", text or "the tool failed")
        return Observation(tool=name, text=text or "no output", data=result.structuredContent or {})

    def close(self) -> None:
        """Ends the server. Idempotent."""
        connection, self._connection, self.was_called = self._connection, None, False
        if connection is not None:
            connection.close()

    def _connect(self, workspace: Workspace) -> Connection:
        on_host = self.entry.startswith("mcp-host:")
        link = HostLink(self._argv) if on_host else SandboxLink(workspace.sandbox, self._argv)
        self._connection = Connection(link)
        return self._connection


async def _list_tools(session: ClientSession) -> list[types.Tool]:
    """All pages of the list."""
    tools: list[types.Tool] = []
    cursor: str | None = None
    while True:
        page = await session.list_tools(params=types.PaginatedRequestParams(cursor=cursor))
        tools += page.tools
        cursor = page.nextCursor
        if cursor is None:
            return tools


def _text(block: types.ContentBlock) -> str:
    """A block of content as text; what is no text is named."""
    if isinstance(block, types.TextContent):
        return block.text
    if isinstance(block, types.EmbeddedResource) and isinstance(block.resource, types.TextResourceContents):
        return block.resource.text
    if isinstance(block, types.ResourceLink):
        return f"[resource {block.uri}]"
    return f"[{block.type}]"


class ServerEnded(Exception):
    """The server did not start, or runs no more; the message says why in one line."""


class Connection:
    """A running server, and the SDK's client of it.

    Raises:
        ServerEnded: the server does not start.
        TimeoutError: it does not answer.
        ToolFailure: it does not speak the protocol.
        SandboxError: its sandbox broke.
    """

    def __init__(self, link: HostLink | SandboxLink) -> None:
        self._link = link
        self._running = ExitStack()
        try:
            self._portal = self._running.enter_context(start_blocking_portal())
            try:
                self._session = self._running.enter_context(self._portal.wrap_async_context_manager(self._open()))
            except OSError as error:
                raise ServerEnded(f"{error.filename}: {error.strerror}") from None
            self.ask(lambda session: session.initialize(), START_TIMEOUT_S)
        except BaseException:
            self.close()
            raise

    @asynccontextmanager
    async def _open(self) -> AsyncGenerator[ClientSession]:
        us = types.Implementation(name="gumshoe", version=__version__)
        async with self._link.connect() as streams, ClientSession(*streams, client_info=us) as session:
            yield session

    def ask(self, question: Callable[[ClientSession], Awaitable[T]], timeout: float) -> T:
        """The server's answer. Raises as the class does, and ToolFailure if the server refuses."""
        try:
            return self._portal.call(self._answer, question, timeout)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            raise self._link.why_ended() from None
        except McpError as error:
            if error.error.code == types.CONNECTION_CLOSED:
                raise self._link.why_ended() from None
            raise ToolFailure("tool_error", error.error.message) from None

    async def _answer(self, question: Callable[[ClientSession], Awaitable[T]], timeout: float) -> T:
        with anyio.fail_after(timeout):
            try:
                return await question(self._session)
            except (ValidationError, RuntimeError) as error:  # from the client, about what it was sent
                message = cut_line(f"the tool's server gave an invalid answer: {error}")
                raise ToolFailure("bad_answer", message) from None

    def close(self) -> None:
        """Ends the server. Idempotent."""
        with suppress(ExceptionGroup):  # of a server that ended while it was written to
            self._running.close()
        self._link.close()


class HostLink:
    """A server on this machine, with the few variables of the environment that the SDK gives to servers."""

    def __init__(self, argv: Sequence[str]) -> None:
        self._argv = argv
        self._errors = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 - see `close`

    def connect(self) -> AbstractAsyncContextManager[Streams]:
        """Starts the server, and ends it with its children. Raises OSError."""
        command, *args = self._argv
        server = StdioServerParameters(command=command, args=args, env=PLAIN_OUTPUT, encoding_error_handler="replace")
        return stdio_client(server, self._errors)

    def why_ended(self) -> ServerEnded:
        """What to raise when the server has broken off the connection."""
        self._errors.seek(0)
        return ServerEnded(_last_line("it closed the connection", self._errors.read()))

    def close(self) -> None:
        """Forgets what the server wrote to its standard error. Idempotent."""
        self._errors.close()


class SandboxLink:
    """A server in a sandbox, started in the workspace. Raises SandboxError if the sandbox itself broke."""

    def __init__(self, sandbox: Sandbox, argv: Sequence[str]) -> None:
        carrier = [sandbox.python, *our_program(sandbox.support, "programs.mcp")]
        self._session = sandbox.open_session([*carrier, *argv], env=PLAIN_OUTPUT)
        self._printed = ""
        self._failure: Exception | None = None

    @asynccontextmanager
    async def connect(self) -> AsyncGenerator[Streams]:
        """Streams that lead to the server, by the control channel of the session."""
        to_client, incoming = anyio.create_memory_object_stream[SessionMessage | Exception]()
        outgoing, from_client = anyio.create_memory_object_stream[SessionMessage]()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._carry, from_client, to_client)
            yield incoming, outgoing
            tasks.cancel_scope.cancel()

    async def _carry(
        self,
        from_client: MemoryObjectReceiveStream[SessionMessage],
        to_client: MemoryObjectSendStream[SessionMessage | Exception],
    ) -> None:
        """Carries messages back and forth: after each request of the client, all that comes before its response."""
        unsent: list[JsonValue] = []
        async with from_client, to_client:
            async for message in from_client:
                unsent.append(_as_json(message))
                request = message.message.root
                while isinstance(request, types.JSONRPCRequest):
                    found = await self._exchange(unsent)
                    unsent = []
                    if found is None:
                        return
                    try:
                        answer = types.JSONRPCMessage.model_validate(found)
                    except ValidationError as error:
                        await to_client.send(error)
                        continue
                    await to_client.send(SessionMessage(answer))
                    if isinstance(answer.root, types.JSONRPCRequest):  # The client answers it at once.
                        unsent = [_as_json(await from_client.receive())]
                    elif isinstance(answer.root, (types.JSONRPCResponse, types.JSONRPCError)):
                        break  # It is to the only request under way.

    async def _exchange(self, messages: list[JsonValue]) -> object:
        """Writes messages to the server, and returns its next one; None if there is none."""
        request = partial(self._session.request, {"messages": messages})
        try:
            reply = await self._poll(request)
            while reply.timed_out:
                reply = await self._poll(self._session.wait_message)
        except SandboxError as error:
            self._failure = error
            return None
        answer = reply.message or {}
        self._failure = ServerEnded(_last_line(str(answer.get("ended", "it ended")), self._printed))
        return answer.get("message")

    async def _poll(self, ask: Callable[[float], SessionReply]) -> SessionReply:
        """Asks for a short time: meanwhile the sandbox does nothing else, not even end the session."""
        reply = await to_thread.run_sync(ask, _POLL_S)
        self._printed = (self._printed + reply.output)[-_TAIL:]
        return reply

    def why_ended(self) -> Exception:
        """What to raise when there are no more messages."""
        return self._failure or ServerEnded("it ended")

    def close(self) -> None:
        """Ends all that runs in the session. Idempotent."""
        self._session.close()


def _as_json(message: SessionMessage) -> JsonValue:
    return message.message.model_dump(mode="json", by_alias=True, exclude_none=True)


def _last_line(how: str, printed: str) -> str:
    """How a server ended, with the last line of what it said."""
    last_line = plain_text(printed).strip().rpartition("\n")[2]
    return cut_line(f"{how}: {last_line}" if last_line else how)

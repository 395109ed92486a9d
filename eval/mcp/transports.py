"""How clients reach the server: over standard input and output, or over HTTP."""

from __future__ import annotations

import asyncio
import os
import selectors
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import IO, Any, cast

import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from gumshoe.eval.mcp.config import McpConfig

__all__ = ["PATH", "http_app", "run_stdio"]

PATH = "/mcp"
LONGEST_LINE = 16 << 20


def run_stdio(server: Server[Any]) -> None:
    """Serves one client until it closes our standard input, or until SIGTERM. Raises KeyboardInterrupt at SIGINT."""
    ended_by: int | None = None
    try:
        ended_by = anyio.run(_serve_stdio, server, backend="asyncio")
    except* (anyio.ClosedResourceError, anyio.BrokenResourceError, BrokenPipeError):
        pass  # The client has left and waits for no answer.
    if ended_by == signal.SIGINT:
        raise KeyboardInterrupt


async def _serve_stdio(server: Server[Any]) -> int | None:
    """Returns the number of the signal that ended it, if one did."""
    received: list[int] = []
    # Anything else that is printed must not get in between the messages.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    async with anyio.create_task_group() as group:
        group.start_soon(_cancel_on_signal, group.cancel_scope, received)
        async with stdio_server(await _standard_input(), anyio.wrap_file(answers)) as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())
        group.cancel_scope.cancel()
    return received[0] if received else None


async def _cancel_on_signal(scope: anyio.CancelScope, received: list[int]) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for number in signals:
            received.append(number)
            scope.cancel()


async def _standard_input() -> anyio.AsyncFile[str]:
    """Standard input, read without a thread where it may keep us waiting: such a thread could not be stopped."""
    if not _may_wait(sys.stdin):
        return anyio.wrap_file(open(sys.stdin.fileno(), encoding="utf-8", errors="replace", closefd=False))
    reader = asyncio.StreamReader(limit=LONGEST_LINE)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    return cast("anyio.AsyncFile[str]", _Lines(reader))


def _may_wait(file: IO[str]) -> bool:
    """Whether it is a pipe, a socket or a terminal, and not a file or the null device, for which nothing can wait."""
    with selectors.DefaultSelector() as selector:
        try:
            selector.register(file, selectors.EVENT_READ)
        except PermissionError:
            return False
    return True


class _Lines:
    """The lines of a stream. A line longer than a message may be ends the stream."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader

    def __aiter__(self) -> _Lines:
        return self

    async def __anext__(self) -> str:
        try:
            line = await self._reader.readline()
        except ValueError:
            line = b""
        if not line:
            raise StopAsyncIteration
        return line.decode("utf-8", "replace")


def http_app(server: Server[Any], config: McpConfig) -> ASGIApp:
    """The application: streamable HTTP at `PATH`, a sandbox for each session. Serve it behind a `Guard`."""
    manager = StreamableHTTPSessionManager(server, session_idle_timeout=config.idle_s, max_sessions=config.sessions)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        async with manager.run():
            yield

    return Starlette(routes=[Route(PATH, _Endpoint(manager))], lifespan=lifespan)


class _Endpoint:
    """All methods of one path, as an application of its own."""

    def __init__(self, manager: StreamableHTTPSessionManager) -> None:
        self._manager = manager

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._manager.handle_request(scope, receive, send)

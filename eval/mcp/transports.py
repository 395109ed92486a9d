"""How clients reach the server: over standard input and output, or over HTTP."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from gumshoe.eval.listening import Bearer
from gumshoe.eval.mcp.config import McpConfig

__all__ = ["PATH", "http_app", "run_stdio"]

PATH = "/mcp"
LONGEST_LINE = 16 << 20


def run_stdio(server: Server[Any]) -> None:
    """Serves one client until it closes our standard input, or until SIGINT or SIGTERM."""
    anyio.run(_serve_stdio, server, backend="asyncio")


async def _serve_stdio(server: Server[Any]) -> None:
    # Anything else that is printed must not get in between the messages.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    async with anyio.create_task_group() as group:
        group.start_soon(_cancel_on_signal, group.cancel_scope)
        lines = cast("anyio.AsyncFile[str]", _Lines(await _standard_input()))
        async with stdio_server(lines, anyio.wrap_file(answers)) as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())
        group.cancel_scope.cancel()


async def _cancel_on_signal(scope: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            scope.cancel()


async def _standard_input() -> asyncio.StreamReader:
    """Standard input, read without a thread: a thread that waits for a line could not be stopped."""
    reader = asyncio.StreamReader(limit=LONGEST_LINE)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    return reader


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


def http_app(server: Server[Any], config: McpConfig, listening: socket.socket, token: str | None) -> ASGIApp:
    """The application behind a socket: streamable HTTP at `PATH`, a sandbox for each session.

    Without a token only requests to this machine's own names are answered, so that no web page can reach it.
    """
    port = listening.getsockname()[1]
    own = [f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")]
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=token is None,
        allowed_hosts=own,
        allowed_origins=[f"http://{name}" for name in own],
    )
    manager = StreamableHTTPSessionManager(
        server, security_settings=security, session_idle_timeout=config.idle_s, max_sessions=config.sessions
    )

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        async with manager.run():
            yield

    app = Starlette(routes=[Route(PATH, _Endpoint(manager))], lifespan=lifespan)
    return app if token is None else Bearer(app, token)


class _Endpoint:
    """All methods of one path, as an application of its own."""

    def __init__(self, manager: StreamableHTTPSessionManager) -> None:
        self._manager = manager

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._manager.handle_request(scope, receive, send)

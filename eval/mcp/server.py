"""The MCP server: the tools of a session and `investigate`, with their results as text and as data.

Clients reach it over standard input and output, or over HTTP.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar, cast

import anyio
from anyio import to_thread
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from gumshoe import __version__
from gumshoe.collect.packs import pack_text
from gumshoe.collect.run.control import Control, Interrupted
from gumshoe.errors import GumshoeError
from gumshoe.eval.mcp.tool_session import McpConfig, Repository, ToolSession
from gumshoe.records import ContextPack, Decision, Observation, Trajectory
from gumshoe.tools import make_tools
from gumshoe.tools.calls.schema import read_signature

INVESTIGATE = "investigate"
INSTRUCTIONS = """\
Tools on a copy of the repository in a sandbox: nothing that they run can change your files or reach the network. \
Edits to your files are copied into the sandbox before the next call."""
ADVICE = {
    "eval": "run code or the tests",
    "suspects": "rank the places that failing tests run through",
    "trace": "see what a function does",
    "pdb": "stop where it fails",
    "vary": "try small changes in a suspect",
    "whatif": "try a fix before you write it",
}
"""What a tool is for, in the order in which a client may want to use them."""
T = TypeVar("T")
PATH = "/mcp"
LONGEST_LINE = 16 << 20


# Never run: the tool's description and schema are read from it. `ToolSession.investigate` does the work.
def investigate(problem: str = "") -> str:
    """Look for the cause of failing tests or of a described problem, and report where it is and what was seen.

    Takes a while. Returns places, findings with quotes from real runs, and a hypothesis.

    Args:
        problem: what is wrong, in plain words; default: the tests fail
    """
    raise NotImplementedError


def instructions(tools: Sequence[str]) -> str:
    """What a client's model is told about the server, and about those of its tools that we have advice on."""
    advice = [f"`{name}`: {what}" for name, what in ADVICE.items() if name in tools]
    offered = f" {'; '.join(advice)}." if advice else ""
    return f"{INSTRUCTIONS}{offered} `{INVESTIGATE}` looks for the cause by itself."


def make_server(repository: Repository, config: McpConfig) -> Server[ToolSession]:
    """A server whose every session has a `ToolSession` of its own, closed when the session ends.

    Raises ConfigError for a tool that does not exist.
    """
    tools = _tools(config)

    @asynccontextmanager
    async def lifespan(_: Server[ToolSession]) -> AsyncGenerator[ToolSession]:
        session = ToolSession(repository, config)
        try:
            yield session
        finally:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(session.close)

    server: Server[ToolSession] = Server("gumshoe", __version__, instructions(config.tools), lifespan=lifespan)

    @server.list_tools()
    async def list_tools() -> list[types.Tool]:
        return tools

    # The tools check their arguments themselves, and say what the right call would be.
    @server.call_tool(validate_input=False)
    async def call_tool(name: str, arguments: dict[str, Any]) -> types.CallToolResult:
        session = server.request_context.lifespan_context
        try:
            if name == INVESTIGATE:
                problem = str(arguments.get("problem") or "")
                return _investigated(await _in_thread(lambda control: session.investigate(problem, control)))
            return _observed(await _in_thread(lambda control: session.call(name, arguments, control)))
        except Interrupted:
            return _failed("interrupted", "the call was stopped")
        except GumshoeError as error:
            return _failed(type(error).__name__, str(error))

    return server


async def _in_thread(work: Callable[[Control], T]) -> T:
    """What `work` returns; a cancelled request aborts it."""
    control = Control()
    try:
        return await to_thread.run_sync(lambda: work(control), abandon_on_cancel=True)
    finally:
        control.abort()


def _tools(config: McpConfig) -> list[types.Tool]:
    made = [
        types.Tool(
            name=tool.name,
            description=tool.description,
            inputSchema=tool.parameters,
            annotations=types.ToolAnnotations(
                readOnlyHint=tool.decision is not Decision.EDIT and not tool.changes_files, openWorldHint=False
            ),
        )
        for tool in make_tools(config.tools)
    ]
    signature = read_signature(investigate, INVESTIGATE)
    return [
        *made,
        types.Tool(
            name=INVESTIGATE,
            description=signature.description,
            inputSchema=signature.parameters,
            outputSchema=ContextPack.model_json_schema(mode="serialization"),
            annotations=types.ToolAnnotations(readOnlyHint=True),
        ),
    ]


def _observed(observation: Observation) -> types.CallToolResult:
    failure = observation.failure
    if failure is not None:
        return _failed(failure.kind, observation.text)
    return types.CallToolResult(content=[_text(observation.text)], structuredContent=dict(observation.data))


def _investigated(trajectory: Trajectory) -> types.CallToolResult:
    pack = trajectory.context_pack
    if pack is None:
        last = trajectory.steps[-1].completion.text.strip() if trajectory.steps else ""
        return _failed("no_report", f"nothing was found ({trajectory.stop}). {last}".strip())
    return types.CallToolResult(content=[_text(pack_text(pack))], structuredContent=pack.model_dump(mode="json"))


def _failed(kind: str, message: str) -> types.CallToolResult:
    data = {"failure": {"kind": kind, "message": message}}
    return types.CallToolResult(content=[_text(message)], structuredContent=data, isError=True)


def _text(text: str) -> types.TextContent:
    return types.TextContent(type="text", text=text)


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
        requests = cast("anyio.AsyncFile[str]", _standard_input())
        async with stdio_server(requests, anyio.wrap_file(answers)) as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())
        group.cancel_scope.cancel()
    return received[0] if received else None


async def _cancel_on_signal(scope: anyio.CancelScope, received: list[int]) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for number in signals:
            received.append(number)
            scope.cancel()


async def _standard_input() -> AsyncGenerator[str]:
    """The lines of standard input, up to one that is too long. Not read in a thread, which nothing could stop."""
    rest = b""
    while len(rest) <= LONGEST_LINE:
        with suppress(PermissionError):  # of a file or the null device, which keep nobody waiting
            await anyio.wait_readable(sys.stdin)
        data = os.read(sys.stdin.fileno(), 1 << 16)
        if not data:
            return
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            yield line.decode("utf-8", "replace")


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

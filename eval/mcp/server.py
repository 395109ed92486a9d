"""The MCP server: the tools of a session and `investigate`, with their results as text and as data."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import anyio
from anyio import to_thread
from mcp import types
from mcp.server.lowlevel import Server

from gumshoe import __version__
from gumshoe.collect.packs import pack_text
from gumshoe.collect.run.control import Control, Interrupted
from gumshoe.errors import GumshoeError
from gumshoe.eval.mcp.config import McpConfig
from gumshoe.eval.mcp.tool_session import Repository, ToolSession
from gumshoe.protocols import Tool
from gumshoe.records import ContextPack, Decision, Observation, Trajectory
from gumshoe.tools import make_tools
from gumshoe.tools.base import BaseTool
from gumshoe.tools.calls.schema import read_signature

__all__ = ["INVESTIGATE", "make_server"]

INVESTIGATE = "investigate"
INSTRUCTIONS = """\
Tools on a copy of the repository in a sandbox: nothing that they run can change your files or reach the network. \
Edits to your files are copied into the sandbox before the next call. Start with `eval` or `suspects`, see what a \
function does with `trace`, stop where it fails with `pdb`, let `vary` try small changes in a suspect, and try a fix \
with `whatif` before you write it. \
`investigate` looks for the cause by itself."""
T = TypeVar("T")


def investigate(problem: str = "") -> str:
    """Look for the cause of failing tests or of a described problem, and report where it is and what was seen.

    Takes a while. Returns places, findings with quotes from real runs, and a hypothesis.

    Args:
        problem: what is wrong, in plain words; default: the tests fail
    """
    raise NotImplementedError


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

    server: Server[ToolSession] = Server("gumshoe", __version__, INSTRUCTIONS, lifespan=lifespan)

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


def _changes_files(tool: Tool) -> bool:
    return tool.decision is Decision.EDIT or (isinstance(tool, BaseTool) and tool.changes_files)


def _tools(config: McpConfig) -> list[types.Tool]:
    made = [
        types.Tool(
            name=tool.name,
            description=tool.description,
            inputSchema=tool.parameters,
            annotations=types.ToolAnnotations(readOnlyHint=not _changes_files(tool), openWorldHint=False),
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

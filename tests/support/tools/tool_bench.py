"""An environment to call tools in."""

from __future__ import annotations

from pydantic import JsonValue

from gumshoe.env import DebugEnv
from gumshoe.records import Observation, ToolCall

__all__ = ["Bench"]


class Bench:
    """An environment with tools, and a short way to call them."""

    def __init__(self, env: DebugEnv) -> None:
        self.env = env
        self.workspace = env.workspace

    def call(self, tool: str, **arguments: JsonValue) -> Observation:
        """Calls a tool as an agent does."""
        call = ToolCall(id="call", name=tool, arguments=arguments)
        return self.env.toolbox.dispatch(call, self.workspace)

    def text(self, tool: str, **arguments: JsonValue) -> str:
        """What the agent reads of a call."""
        return self.call(tool, **arguments).text

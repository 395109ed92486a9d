"""What an agent can do: one file a tool, a registry to make them by name, a toolbox to run them."""

from __future__ import annotations

from gumshoe.tools.base import BaseTool, FunctionTool, tool
from gumshoe.tools.registry import make_tools, tool_names
from gumshoe.tools.toolbox import Toolbox

__all__ = ["BaseTool", "FunctionTool", "Toolbox", "make_tools", "tool", "tool_names"]

"""What an agent can do: one file per tool, a registry that makes them by name, a toolbox that runs them."""

from __future__ import annotations

from gumshoe.tools.base import BaseTool, FunctionTool, tool
from gumshoe.tools.toolbox import Toolbox, make_tools, tool_names

__all__ = ["BaseTool", "FunctionTool", "Toolbox", "make_tools", "tool", "tool_names"]

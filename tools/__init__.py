"""What an agent can do: one file per tool or family of tools, and a toolbox that makes them by name and runs them.

Some tools are also read or used by others:

| module | for whom |
|---|---|
| `toolbox` | environments and agents: `make_toolbox`, `DEBUG_TOOLS`, `with_reproduce`; readers: `decisions_of` |
| `suspects` | `shown_suspects` reads an observation; `rank_by_signals`, to measure the ranking |
| `whatif` | `helpful` and `stop_command`, for the policy `vary` |
| `eval` | `SHOW_OUTCOMES`, the tools whose observations hold outcomes of tests; `failing_outcomes` reads these |
| `report` | `STILL_FAILS`, the failure of a patch that is sent back |
| `calls` | reading and writing calls as text; the signatures of tools |
| `code` | functions, statements and small changes of source |
| `ranking` | which function holds the bug: the spectrum of tests, signals of functions, the model that weighs them |
| `evidence` | the numbered facts of observations, and the check of findings |
| `runs` | programs of `env/inside` and what they leave behind: outcomes, tracebacks, traces, debugging sessions |
"""

from __future__ import annotations

from gumshoe.tools.base import BaseTool, FunctionTool, tool
from gumshoe.tools.toolbox import Toolbox, make_tools, tool_names

__all__ = ["BaseTool", "FunctionTool", "Toolbox", "make_tools", "tool", "tool_names"]

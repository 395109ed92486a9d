"""What an agent can do: a tool is a file, or shares one with its siblings, and declares its role (`BaseTool.decision`).

    ToolCall ──> Toolbox ──> BaseTool.call ──> CallSignature.bind ──> the tool's run(workspace, ...) ──> Observation
                 toolbox     base              calls.schema                │
                                                                           ├──> code: functions, statements, changes
                                                                           ├──> runs ──> env/inside, in the sandbox
                                                                           └──> ranking, evidence

| module | also used by others, besides `BaseTool` |
|---|---|
| `toolbox` | environments and agents: `make_toolbox`, `DEBUG_TOOLS`, `with_reproduce`; readers: `decisions_of` |
| `suspects` | `shown_suspects` reads an observation |
| `whatif` | `helpful` and `stop_command`, for the policy `vary` |
| `trace` | `MOST_CALLS`, for the investigator |
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

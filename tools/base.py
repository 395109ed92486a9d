"""What every tool has in common, and how a function becomes one.

A tool is a class with a `run` method:

    class Wc(BaseTool):
        name = "wc"

        def run(self, workspace: Workspace, path: str) -> str:
            '''Count the lines of a file.'''
            return str(len(workspace.read_text(path).splitlines()))

or, shorter, a function:

    @tool
    def wc(workspace: Workspace, path: str) -> str: ...
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, overload

from pydantic import JsonValue

from gumshoe.errors import ToolFailure
from gumshoe.protocols import Workspace
from gumshoe.records import Decision, Edit, Observation, TestRun
from gumshoe.tools.calls.schema import CallSignature, read_signature

TEXT_LIMIT = 8000
"""Characters of an observation's text; what is longer loses its middle."""


# Reading the signatures of all tools takes longer than a reset, and each episode has tools of its own.
@functools.lru_cache(maxsize=256)
def _read_run(function: Callable[..., Any], name: str, before: int) -> CallSignature:
    """How a tool's `run` is called; `before` counts the parameters before the workspace. Raises TypeError."""
    if list(inspect.signature(function).parameters)[before : before + 1] != ["workspace"]:
        raise TypeError(f"tool {name}: run must take the workspace first, as run(self, workspace, ...)")
    return read_signature(function, name, skip=before + 1)


class ToolEvents(Protocol):
    """How the tools of one toolbox learn of each other's state and events without knowing each other."""

    @property
    def history(self) -> Sequence[Observation]:
        """What the calls of this episode have shown so far, in order."""
        ...

    def marks(self, path: str) -> frozenset[int]:
        """Lines of a file that some tool has marked (breakpoints)."""
        ...

    def on_edit(self, edit: Edit, workspace: Workspace) -> None:
        """Tells every tool that a file was changed which is not among the workspace's edits."""
        ...

    def on_eval(self, run: TestRun, workspace: Workspace) -> None:
        """Tells every tool that the tests were run."""
        ...


class BaseTool:
    """Base of the tools. Subclasses set `name`, perhaps `decision`, and write `run`.

    `decision` is the tool's role. A tool that reports returns the `ContextPack` in its data, as `context_pack`.

    The schema and the description come from the signature and the docstring of `run`, which returns the text of the
    observation, or a whole `Observation`, and raises ToolFailure for what the agent got wrong.

    A tool that is described elsewhere, such as one of an MCP server, has no `run` and no `signature`: it sets
    `description` and `parameters` in an `__init__` that does not call this one, and overrides `call`.
    """

    name: str = ""
    decision: Decision = Decision.SEEK
    changes_files: bool = False
    """Whether a call may change files without reporting it as an edit."""

    events: ToolEvents
    """The toolbox that the tool is in, which sets this."""
    run: Callable[..., str | Observation]

    def __init__(self) -> None:
        self.signature: CallSignature = self._read_signature()
        self.description: str = self.signature.description
        self.parameters: dict[str, JsonValue] = self.signature.parameters

    def _read_signature(self) -> CallSignature:
        if not self.name or not hasattr(self, "run"):
            raise TypeError(f"tool {type(self).__name__}: it needs a name, and a method run(self, workspace, ...)")
        function = getattr(self.run, "__func__", None)
        return _read_run(function, self.name, 1) if function else _read_run(self.run, self.name, 0)

    def call(self, arguments: Mapping[str, JsonValue], workspace: Workspace) -> Observation:
        """Checks the arguments and runs the tool. Raises ToolFailure."""
        result: object = self.run(workspace, **self.signature.bind(arguments))
        if isinstance(result, Observation):
            return result
        if not isinstance(result, str):
            raise TypeError(f"tool {self.name} must return text or an Observation, not {type(result).__name__}")
        return self.observe(result)

    def observe(self, text: str, data: Mapping[str, Any] | None = None, *, truncated: bool = False) -> Observation:
        """An observation of this tool."""
        return Observation(tool=self.name, text=text, data=dict(data or {}), truncated=truncated)

    def marks(self, path: str) -> frozenset[int]:
        """Lines of `path` that this tool has marked."""
        return frozenset()

    def on_reset(self, workspace: Workspace) -> None:
        """A new episode begins."""

    def on_edit(self, edit: Edit, workspace: Workspace) -> None:
        """A file was changed."""

    def on_eval(self, run: TestRun, workspace: Workspace) -> None:
        """The tests were run."""

    def snapshot(self, workspace: Workspace) -> object:
        """What `restore` needs to make the tool what it is now."""

    def restore(self, state: Any, workspace: Workspace) -> None:
        """Goes back to a snapshot of this episode. The files have gone back already, and `on_edit` was told."""

    def is_whole(self, state: Any) -> bool:
        """Whether `restore` brings back from this snapshot all that the tool held."""
        return True

    def close(self) -> None:
        """Ends what the tool started. Idempotent."""


class ConfirmTwice(BaseTool):
    """A tool that ends an episode, but may send what is handed in back once; handed in again, it is taken as it is.

    Whether it did so is part of the episode.
    """

    def __init__(self) -> None:
        super().__init__()
        self._sent_back = False

    def send_back_once(self, kind: str, message: str) -> None:
        """Raises ToolFailure the first time."""
        if not self._sent_back:
            self._sent_back = True
            raise ToolFailure(kind, message)

    def on_reset(self, workspace: Workspace) -> None:
        """Nothing was sent back yet."""
        self._sent_back = False

    def snapshot(self, workspace: Workspace) -> object:
        """Whether something was sent back."""
        return self._sent_back

    def restore(self, state: bool, workspace: Workspace) -> None:
        """As it was."""
        self._sent_back = state


class FunctionTool(BaseTool):
    """A function as a tool. It is given the workspace when its first parameter is called `workspace`."""

    def __init__(self, function: Callable[..., str | Observation], name: str, decision: Decision) -> None:
        self.name = name
        self.decision = decision
        self.function = function
        first, *others = [*inspect.signature(function).parameters, ""]
        if "workspace" in others:
            raise TypeError(f"tool {name}: the parameter 'workspace' must come first")
        self._wants_workspace = first == "workspace"
        super().__init__()

    def _read_signature(self) -> CallSignature:
        return read_signature(self.function, self.name, skip=1 if self._wants_workspace else 0)

    def run(self, workspace: Workspace, **arguments: Any) -> str | Observation:
        """Calls the function, with the workspace where it takes one."""
        return self.function(workspace, **arguments) if self._wants_workspace else self.function(**arguments)


@overload
def tool(function: Callable[..., str | Observation], /) -> FunctionTool: ...
@overload
def tool(
    *, name: str | None = None, decision: Decision = Decision.SEEK
) -> Callable[[Callable[..., str | Observation]], FunctionTool]: ...
def tool(
    function: Callable[..., str | Observation] | None = None,
    /,
    *,
    name: str | None = None,
    decision: Decision = Decision.SEEK,
) -> FunctionTool | Callable[[Callable[..., str | Observation]], FunctionTool]:
    """Turns a typed function with a docstring into a tool: `@tool`, or `@tool(name=..., decision=...)`.

    Args:
        function: returns the observation's text or a whole `Observation`; may raise ToolFailure.
        name: the tool's name; the function's own unless given.
        decision: what a turn that calls it is for.
    """
    if function is not None and not callable(function):
        raise TypeError(f"@tool takes its settings by name, such as @tool(name={function!r})")

    def decorate(decorated: Callable[..., str | Observation]) -> FunctionTool:
        return FunctionTool(decorated, name or decorated.__name__, decision)

    return decorate(function) if function is not None else decorate

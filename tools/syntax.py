"""Whether the sandbox's Python can read a text."""

from __future__ import annotations

from contextlib import suppress

from pydantic import TypeAdapter, ValidationError

from gumshoe.protocols import Workspace
from gumshoe.tools.debug_session import debug_argv
from gumshoe.tools.source import split_lines

__all__ = ["syntax_error"]

_CHECK_TIMEOUT_S = 20.0
_PROBLEM = TypeAdapter(tuple[str, str, int | None])


def syntax_error(workspace: Workspace, code: str) -> str | None:
    """What is wrong with the text of a Python file, with the line; None where nothing is.

    The interpreter that will read the code judges it, in the sandbox: what the text holds cannot harm the host.
    """
    sandbox = workspace.sandbox
    sandbox.prepare_support()
    argv = debug_argv(sandbox, workspace.debug_entrypoint, "programs.syntax")
    data = code.encode("utf-8", "surrogateescape")
    result = sandbox.run(argv, input=data, timeout=_CHECK_TIMEOUT_S, warm=True)
    if result.exit_code not in (0, None):
        return f"Python crashes when it reads this: exit code {result.exit_code}"
    for line in reversed(split_lines(result.output)):  # what starts with the interpreter may print something too
        with suppress(ValidationError):
            kind, message, number = _PROBLEM.validate_json(line)
            return f"{kind}: {message} (line {number})" if number else f"{kind}: {message}"
    return None

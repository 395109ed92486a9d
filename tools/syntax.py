"""Whether the sandbox's Python can read a text."""

from __future__ import annotations

from pydantic import TypeAdapter, ValidationError

from gumshoe.protocols import Workspace
from gumshoe.tools.source import split_lines

__all__ = ["syntax_error"]

_CHECK_TIMEOUT_S = 20.0
_CHECK = """\
import sys, warnings
warnings.simplefilter("ignore")
try:
    compile(sys.stdin.buffer.read(), "x", "exec", 0, True)
except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
    import json
    line = getattr(error, "lineno", None)
    print(json.dumps([type(error).__name__, getattr(error, "msg", str(error)), line]))
"""
"""Run in the sandbox: the interpreter that will read the code judges it, and what it holds cannot harm the host."""
_PROBLEM = TypeAdapter(tuple[str, str, int | None])


def syntax_error(workspace: Workspace, code: str) -> str | None:
    """What is wrong with the text of a Python file, with the line; None where nothing is."""
    data = code.encode("utf-8", "surrogateescape")
    sandbox = workspace.sandbox
    result = sandbox.run([sandbox.python, "-I", "-S", "-c", _CHECK], input=data, timeout=_CHECK_TIMEOUT_S)
    lines = split_lines(result.output.strip())
    if not lines:
        return None
    try:
        kind, message, line = _PROBLEM.validate_json(lines[-1])
    except ValidationError:
        return None
    return f"{kind}: {message} (line {line})" if line else f"{kind}: {message}"

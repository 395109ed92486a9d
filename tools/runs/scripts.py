"""The programs of `env/inside` that take a request, and what they write."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from pydantic import TypeAdapter, ValidationError

from gumshoe.protocols import Sandbox, Workspace
from gumshoe.records import ExecResult
from gumshoe.tools.code.source import split_lines
from gumshoe.tools.runs.commands import NO_TRACEBACKS, debug_argv, pytest_options

__all__ = ["Script", "read_written", "syntax_error"]

_MARGIN_S = 2.0
_CHECK_TIMEOUT_S = 20.0
_PROBLEM = TypeAdapter(tuple[str, str, int | None])


class Script:
    """One of the programs that run the tests in their own way: `runs.suspects`, `runs.whatif` or `runs.trace`.

    Attributes:
        folder: where its request lies, and what it writes.
    """

    def __init__(self, workspace: Workspace, name: str) -> None:
        self._workspace = workspace
        self._name = name
        self.folder = f"{workspace.sandbox.support}/{name}"

    def run(self, request: Mapping[str, Any], options: str = "", seconds: float | None = None) -> ExecResult:
        """Runs the entrypoint under it, in the workspace, which is put back afterward. `folder` is emptied before.

        Args:
            request: without its `deadline_s`, which leaves it time to end before it is killed.
            options: of pytest, beside those that are set. It prints no tracebacks, since nobody reads them.
            seconds: its deadline, if that is to come before the task's limit for one command.
        """
        sandbox, timeout = self._workspace.sandbox, self._workspace.task.limits.command_timeout_s
        deadline = max(1.0, timeout - _MARGIN_S)
        sandbox.prepare_support()
        data = json.dumps({**request, "deadline_s": deadline if seconds is None else min(seconds, deadline)})
        sandbox.run(["rm", "-rf", self.folder], timeout=timeout)
        sandbox.write_file(f"{self.folder}/request.json", data.encode(), inside=False)
        before = sandbox.snapshot()
        argv = debug_argv(sandbox, self._workspace.debug_entrypoint, f"runs.{self._name}")
        addopts = pytest_options(sandbox.environment, options, NO_TRACEBACKS)
        variables = {"PYTEST_ADDOPTS": addopts, f"GUMSHOE_{self._name.upper()}": f"{self.folder}/request.json"}
        ran = sandbox.run(argv, env=variables, timeout=timeout + _MARGIN_S, warm=True)
        sandbox.restore(before)
        return ran

    def read(self, name: str) -> bytes:
        """A file that it wrote; nothing where it wrote nothing."""
        return read_written(self._workspace.sandbox, f"{self.folder}/{name}")


def read_written(sandbox: Sandbox, path: str) -> bytes:
    """What a program of ours wrote; nothing where it wrote nothing."""
    try:
        return sandbox.read_file(path, inside=False)
    except OSError:
        return b""


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

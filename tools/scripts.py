"""Runs a task's tests under one of the programs of `env/inside` that take a request, such as `runs.whatif`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from gumshoe.protocols import Workspace
from gumshoe.records import ExecResult
from gumshoe.tools.debug_session import debug_argv
from gumshoe.tools.outcomes import NO_TRACEBACKS, pytest_options

__all__ = ["read_written", "run_script", "script_folder"]

_MARGIN_S = 2.0


def script_folder(workspace: Workspace, name: str) -> str:
    """Where the request of a script lies, and what it writes."""
    return f"{workspace.sandbox.support}/{name}"


def run_script(workspace: Workspace, name: str, request: Mapping[str, Any], options: str = "") -> ExecResult:
    """Runs the entrypoint under `runs.NAME`, whose folder is emptied before; the workspace is put back behind it.

    Args:
        workspace: where.
        name: of the script: `whatif` or `trace`.
        request: for the script, without its `deadline_s`, which leaves it time to end before it is killed.
        options: of pytest, beside those that are set. It prints no tracebacks, since nobody reads them.
    """
    sandbox, timeout = workspace.sandbox, workspace.task.limits.command_timeout_s
    sandbox.prepare_support()
    folder = script_folder(workspace, name)
    data = json.dumps({**request, "deadline_s": max(1.0, timeout - _MARGIN_S)})
    sandbox.run(["rm", "-rf", folder], timeout=timeout)
    sandbox.write_file(f"{folder}/request.json", data.encode(), inside=False)
    before = sandbox.snapshot()
    argv = debug_argv(sandbox, workspace.debug_entrypoint, f"runs.{name}")
    addopts = pytest_options(sandbox.environment, options, NO_TRACEBACKS)
    variables = {"PYTEST_ADDOPTS": addopts, f"GUMSHOE_{name.upper()}": f"{folder}/request.json"}
    ran = sandbox.run(argv, env=variables, timeout=timeout + _MARGIN_S, warm=True)
    sandbox.restore(before)
    return ran


def read_written(workspace: Workspace, path: str) -> bytes:
    """What a script wrote; nothing where it wrote nothing."""
    try:
        return workspace.sandbox.read_file(path, inside=False)
    except OSError:
        return b""

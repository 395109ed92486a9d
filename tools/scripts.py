"""Runs a task's tests under one of the injected scripts that take a request, such as `gumshoe_whatif.py`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from gumshoe.protocols import Workspace
from gumshoe.records import ExecResult
from gumshoe.tools.debug_session import debug_argv

__all__ = ["read_written", "run_script", "script_folder"]

_MARGIN_S = 2.0


def script_folder(workspace: Workspace, name: str) -> str:
    """Where the request of a script lies, and what it writes."""
    return f"{workspace.sandbox.support}/{name}"


def run_script(
    workspace: Workspace, name: str, request: Mapping[str, Any], env: Mapping[str, str] = MappingProxyType({})
) -> ExecResult:
    """Runs the entrypoint under `gumshoe_NAME.py`, whose folder is emptied before; the workspace is put back behind it.

    Args:
        workspace: where.
        name: of the script: `whatif` or `trace`.
        request: for the script, without its `deadline_s`, which leaves it time to end before it is killed.
        env: further variables of the program.
    """
    sandbox, timeout = workspace.sandbox, workspace.task.limits.command_timeout_s
    sandbox.prepare_support()
    folder = script_folder(workspace, name)
    given = json.dumps({**request, "deadline_s": max(1.0, timeout - _MARGIN_S)})
    sandbox.run(["rm", "-rf", folder], timeout=timeout)
    sandbox.write_file(f"{folder}/request.json", given.encode(), inside=False)
    before = sandbox.snapshot()
    argv = debug_argv(sandbox, workspace.task.entrypoint, f"gumshoe_{name}.py")
    variables = {**env, f"GUMSHOE_{name.upper()}": f"{folder}/request.json"}
    ran = sandbox.run(argv, env=variables, timeout=timeout + _MARGIN_S, warm=True)
    sandbox.restore(before)
    return ran


def read_written(workspace: Workspace, path: str) -> bytes:
    """What a script wrote; nothing where it wrote nothing."""
    try:
        return workspace.sandbox.read_file(path, inside=False)
    except OSError:
        return b""

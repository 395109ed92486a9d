"""The backends that the tests of sandboxes go through, configs of the cheap ones, and shell scripts in any."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from gumshoe.env import DebugEnv, SandboxConfig
from gumshoe.env.sandboxes.client import WardenSandbox, WardenSession
from gumshoe.records import Task

BACKENDS = [
    pytest.param("docker", marks=pytest.mark.needs("docker")),
    pytest.param("podman", marks=pytest.mark.needs("podman")),
    pytest.param("bubblewrap", marks=pytest.mark.needs("bubblewrap")),
    "local",
]
CONTAINERS, ISOLATED = BACKENDS[:2], BACKENDS[:3]

NO_PLUGINS = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
"""For the local sandbox, which runs this Python: loading all its pytest plugins takes longer than a small suite."""
LOCAL = SandboxConfig(kind="local", unsafe=True, env=NO_PLUGINS)
LOCAL_SETTINGS: dict[str, Any] = LOCAL.model_dump(include={"kind", "unsafe", "env"})
"""The same as it stands in config files."""
CHEAPEST = SandboxConfig(kind="bubblewrap", env=NO_PLUGINS)
"""The cheapest sandbox that isolates."""
CHEAPEST_SETTINGS: dict[str, Any] = CHEAPEST.model_dump(include={"kind", "env"})
CHEAPEST_OPTIONS = ("--sandbox", CHEAPEST.kind, "-p", f"env={json.dumps(CHEAPEST.env)}")
"""The same for `gumshoe tasks check`, which takes settings of the sandbox."""


def make_local_env(task: Task, tools: Sequence[str]) -> DebugEnv:
    """An environment in the local sandbox; other processes can import this function."""
    return DebugEnv(task, tools=tools, sandbox=LOCAL, trusted=True)


def sh(sandbox: WardenSandbox, script: str, timeout: float = 30) -> str:
    """What a script prints."""
    return sandbox.run(["sh", "-c", script], timeout=timeout).output


def wait_for_text(session: WardenSession, text: str) -> str:
    """Waits, at most for a minute, until a program has printed a text; all that it has printed meanwhile."""
    output = ""
    for _ in range(600):
        output += session.wait_message(0.1).output
        if text in output:
            return output
    raise AssertionError(output)

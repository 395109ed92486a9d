"""Where agents debug: sandboxes, the workspace in them, and the Gymnasium environment.

The names below are imported when they are first used: the tools import what is in `inside`, and need no Gymnasium.

| part | holds |
|---|---|
| `debug_env`, `workspace`, `spaces` | the environment, and the repository in its sandbox, as tools see it |
| `sandboxes` | starting sandboxes and talking to them |
| `inside` | all that runs in them |
| `tasks` | where tasks come from |
| `verifier` | whether a patch resolves its task |
| `bugs` | making tasks: from bundled projects, and from packages |
| `diff`, `git`, `patterns` | patches; git on repositories that nobody trusts; gitignore patterns |
| `harness_rows`, `swebench_export` | rows for the official harness of SWE-bench, and tasks as such rows |
| `virtualenvs` | what packages need to run their tests, built once and shared |
| `casebook` | small projects of our own, each with a bug |
| `config` | the config of sandboxes |
| `commands` | the commands that make and check tasks, and `doctor` |

A part imports what is further right:

    commands --> swebench_export --> bugs --> verifier --> workspace, sandboxes --> tasks --> inside, diff, git
                       |          debug_env --^                                      ^
                       `--> harness_rows ---------------------------------------------'

The other parts import none of these, and neither do `inside`, `diff`, `git` and `patterns`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gumshoe.env.config import SandboxConfig
    from gumshoe.env.debug_env import ENV_ID, DebugEnv
    from gumshoe.env.sandboxes.open import open_sandbox
    from gumshoe.env.workspace import Workspace

__all__ = ["ENV_ID", "DebugEnv", "SandboxConfig", "Workspace", "open_sandbox"]

_HOMES = {
    "ENV_ID": "gumshoe.env.debug_env",
    "DebugEnv": "gumshoe.env.debug_env",
    "SandboxConfig": "gumshoe.env.config",
    "Workspace": "gumshoe.env.workspace",
    "open_sandbox": "gumshoe.env.sandboxes.open",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value

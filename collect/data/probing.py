"""Runs the probes of packs again, each in a fresh sandbox."""

from __future__ import annotations

from collections.abc import Sequence

from gumshoe.collect.episode.tool_output import reproduction_of
from gumshoe.env.config import SandboxConfig
from gumshoe.env.debug_env import DebugEnv
from gumshoe.records import ContextPack, Step, Task, ToolCall
from gumshoe.tools.evidence.checks import check_findings

__all__ = ["check_pack"]


def check_pack(
    pack: ContextPack, task: Task, sandbox: SandboxConfig, *, trusted: bool = False, steps: Sequence[Step] = ()
) -> ContextPack:
    """The pack with the results of its probes on the task's code as it was at the beginning.

    Where the episode has reproduced an issue, its probes run that test.

    Args:
        pack: what was handed over.
        task: what it is about.
        sandbox: where the tests run.
        trusted: see `gumshoe.env.sandboxes.open.open_sandbox`.
        steps: those of its episode.

    Raises:
        ConfigError: the sandbox does not accept this task.
        SandboxError, TaskError: the sandbox broke, or the task is gone.
    """
    env = DebugEnv(task, tools=("probe", "reproduce"), sandbox=sandbox, trusted=trusted)
    try:
        env.reset()
        if code := pack.reproduction or reproduction_of(steps):
            env.step(ToolCall(id="reproduce", name="reproduce", arguments={"code": code}))
        return pack.model_copy(update={"findings": check_findings(env.workspace, pack.findings)})
    finally:
        env.close()

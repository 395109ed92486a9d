"""Runs the probes of packs again, each in a fresh sandbox."""

from __future__ import annotations

from collections.abc import Sequence

from gumshoe.collect.tool_output import outputs_of_steps
from gumshoe.env.config import SandboxConfig
from gumshoe.env.debug_env import DebugEnv
from gumshoe.records import ContextPack, Step, Task, ToolCall
from gumshoe.tools.probe_checks import check_findings
from gumshoe.tools.probes import with_probes

__all__ = ["check_pack"]


def check_pack(
    pack: ContextPack, task: Task, sandbox: SandboxConfig, *, trusted: bool = False, steps: Sequence[Step] = ()
) -> ContextPack:
    """The pack with what came of its probes on the task's code as it was at the beginning.

    Where the episode has reproduced an issue, its probes run that test.

    Args:
        pack: what was handed over.
        task: what it is about.
        sandbox: where the tests run.
        trusted: see `gumshoe.env.sandboxes.open.open_sandbox`.
        steps: those of its episode; probes that the pack lacks, as older ones do, are derived from them.

    Raises:
        ConfigError: the sandbox does not take this task.
        SandboxError, TaskError: the sandbox broke, or the task is gone.
    """
    shown = [(output.step, output.observation) for output in outputs_of_steps(steps)]
    derived = with_probes(pack.findings, shown)
    findings = [old if old.probe is not None else new for old, new in zip(pack.findings, derived, strict=True)]
    env = DebugEnv(task, tools=("probe", "reproduce"), sandbox=sandbox, trusted=trusted)
    try:
        env.reset()
        for call in _reproductions(steps)[-1:]:
            env.step(call)
        return pack.model_copy(update={"findings": check_findings(env.workspace, findings)})
    finally:
        env.close()


def _reproductions(steps: Sequence[Step]) -> list[ToolCall]:
    """The calls that have put a test in place."""
    return [
        call
        for step in steps
        for call, observation in zip(step.tool_calls, step.observations, strict=False)
        if observation.tool == call.name == "reproduce" and observation.failure is None
    ]

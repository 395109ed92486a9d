"""Runs the probes of packs again, each in a fresh sandbox."""

from __future__ import annotations

from collections.abc import Sequence

from gumshoe.collect.episode.tool_output import outputs_of_steps, reproduction_of
from gumshoe.env.config import SandboxConfig
from gumshoe.env.debug_env import DebugEnv
from gumshoe.records import ContextPack, Finding, Step, Task, ToolCall
from gumshoe.tools.evidence.checks import check_findings
from gumshoe.tools.evidence.probes import with_probes

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
        steps: those of its episode. The probes that follow from them are run, too: a finding is confirmed only if both
            its own probe and the one that its quote leads to now are confirmed.

    Raises:
        ConfigError: the sandbox does not accept this task.
        SandboxError, TaskError: the sandbox broke, or the task is gone.
    """
    shown = [(output.step, output.observation) for output in outputs_of_steps(steps)]
    derived = with_probes(pack.findings, shown) if steps else pack.findings
    other = [number for number, one in enumerate(pack.findings) if derived[number].probe != one.probe]
    env = DebugEnv(task, tools=("probe", "reproduce"), sandbox=sandbox, trusted=trusted)
    try:
        env.reset()
        if code := pack.reproduction or reproduction_of(steps):
            env.step(ToolCall(id="reproduce", name="reproduce", arguments={"code": code}))
        checked = check_findings(env.workspace, [*pack.findings, *(derived[number] for number in other)])
        findings = list(checked[: len(derived)])
        for number, one in zip(other, checked[len(derived) :], strict=True):
            findings[number] = _one_of(findings[number], one)
        return pack.model_copy(update={"findings": tuple(findings)})
    finally:
        env.close()


def _one_of(stored: Finding, derived: Finding) -> Finding:
    """The finding with the stored probe, or the one with the probe derived from its quote if that is not confirmed."""
    assert stored.check is not None
    assert derived.check is not None
    if stored.probe is None or (stored.check.status == "confirmed" and derived.check.status != "confirmed"):
        return derived
    return stored

"""The environment of an episode, and where it comes from: this process, or a node of a cluster.

The state machine of an episode, its policy, its journal and its budget stay with whoever runs it. Only the
environment, that is, the sandbox and the tools in it, may be on another machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import gymnasium

from gumshoe.env.config import SandboxConfig
from gumshoe.env.debug_env import DebugEnv
from gumshoe.env.sandboxes.client import WardenSandbox
from gumshoe.env.verifier import Grade, Verdict, grade_of
from gumshoe.records import ContextPack, Decision, Observation, Oracle, StopReason, Task, ToolCall, ToolSchema

__all__ = [
    "Environment",
    "EnvironmentFactory",
    "EnvironmentInfo",
    "EnvironmentSpec",
    "InProcess",
    "LocalEnvironment",
    "MakeFactory",
    "StepResult",
]


@dataclass(frozen=True)
class EnvironmentSpec:
    """What the environment of one episode is made from.

    The oracle is for the verifier, which `submit` asks if `eval_on_submit` is set; the oracle never enters a sandbox.
    `trusted` is as in `open_sandbox`.
    """

    task: Task
    tools: tuple[str, ...]
    sandbox: SandboxConfig
    trusted: bool
    oracle: Oracle | None = None
    eval_on_submit: bool = True


@dataclass(frozen=True)
class EnvironmentInfo:
    """What an environment offers once its sandbox runs. `decisions` holds the kind of every tool."""

    schemas: tuple[ToolSchema, ...]
    instructions: str
    decisions: Mapping[str, Decision]
    sandbox: str
    image_digest: str | None


@dataclass(frozen=True)
class StepResult:
    """What one call led to."""

    observation: Observation
    reward: float
    stop: StopReason | None
    context_pack: ContextPack | None
    grade: Grade | None = None
    """What the verifier said about a call that submitted a patch."""


class Environment(Protocol):
    """One episode's environment, as its state machine needs it. Every method raises SandboxError if it breaks."""

    def reset(self, seed: int) -> EnvironmentInfo:
        """Starts the sandbox. Raises SandboxError, TaskError and ConfigError, as `DebugEnv.reset` does."""
        ...

    def step(self, call: ToolCall) -> StepResult:
        """Carries out one call."""
        ...

    def patch(self) -> str:
        """What has been changed so far, as a unified diff."""
        ...

    def verify(self) -> Grade:
        """The verifier's grade of what has been changed so far."""
        ...

    def tampering(self) -> tuple[str, ...]:
        """What the agent did to the harness in its own sandbox, as facts."""
        ...

    def snapshot(self) -> str | None:
        """Keeps the environment as it is; None if part of it, such as a paused debugger, cannot be kept."""
        ...

    def restore(self, snapshot: str) -> None:
        """Puts the environment back."""
        ...

    def give_up(self) -> None:
        """Ends the call that another thread waits for, so that `close` need not wait for it."""
        ...

    def close(self) -> None:
        """Removes the sandbox. Idempotent."""
        ...


class EnvironmentFactory(Protocol):
    """Makes the environments of one worker's episodes, one after the other."""

    def ready(self) -> bool:
        """Whether an episode can begin; may wait a moment. Raises GumshoeError if none ever can."""
        ...

    def environment(self, spec: EnvironmentSpec) -> Environment:
        """The environment of one episode; nothing is started before its `reset`."""
        ...

    def close(self) -> None:
        """Releases what it holds. Idempotent."""
        ...


MakeFactory = Callable[[], EnvironmentFactory]


class InProcess:
    """Environments in the process that runs the command."""

    def ready(self) -> bool:
        """Always."""
        return True

    def environment(self, spec: EnvironmentSpec) -> Environment:
        """An environment in this process."""
        return LocalEnvironment(
            DebugEnv(
                spec.task,
                oracle=spec.oracle,
                tools=spec.tools,
                sandbox=spec.sandbox,
                trusted=spec.trusted,
                eval_on_submit=spec.eval_on_submit,
            )
        )

    def close(self) -> None:
        """Nothing is held."""


class LocalEnvironment:
    """A `DebugEnv`, reduced to what crosses from one process to another.

    Args:
        env: a `DebugEnv`, or a wrapper around one, such as `gymnasium.make` returns.
        options: passed to its `reset`.

    Raises:
        TypeError: what is wrapped is not a `DebugEnv`.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], options: dict[str, Any] | None = None) -> None:
        inner = env.unwrapped
        if not isinstance(inner, DebugEnv):
            raise TypeError(f"the environment must be a DebugEnv, not {type(inner).__name__}")
        self._env = env
        self._inner = inner
        self._options = options

    def reset(self, seed: int | None) -> EnvironmentInfo:
        """Starts the sandbox."""
        self._env.reset(seed=seed, options=self._options)
        toolbox, sandbox = self._inner.toolbox, self._inner.sandbox
        return EnvironmentInfo(
            schemas=toolbox.schemas,
            instructions=toolbox.instructions,
            decisions={name: tool.decision for name, tool in toolbox.tools.items()},
            sandbox=sandbox.backend,
            image_digest=sandbox.image_digest,
        )

    def step(self, call: ToolCall) -> StepResult:
        """Carries out one call."""
        _, reward, _, _, info = self._env.step(call)
        submitted = info["stop"] is StopReason.SUBMITTED and self._inner.eval_on_submit
        graded = _grade(self._inner.task, info.get("verdict")) if submitted else None
        return StepResult(info["observation"], float(reward), info["stop"], info.get("context_pack"), graded)

    def patch(self) -> str:
        """What has been changed so far."""
        return self._inner.patch()

    def verify(self) -> Grade:
        """The verifier's grade of what has been changed so far."""
        return _grade(self._inner.task, self._inner.verify())

    def tampering(self) -> tuple[str, ...]:
        """What the agent did to the harness."""
        return self._inner.tampering()

    def snapshot(self) -> str | None:
        """Keeps the environment; None if tools may hold state that a snapshot does not fully restore."""
        name = self._inner.snapshot()
        return name if self._inner.is_whole(name) else None

    def restore(self, snapshot: str) -> None:
        """Puts the environment back. Tools without snapshots had not been used by then, so they begin anew."""
        self._inner.restore(snapshot)
        toolbox = self._inner.toolbox
        if toolbox.others_used:
            toolbox.restart_others(self._inner.workspace)

    def give_up(self) -> None:
        """Ends the call that another thread waits for."""
        sandbox = self._inner.sandbox
        if isinstance(sandbox, WardenSandbox):
            sandbox.give_up()

    def close(self) -> None:
        """Removes the sandbox."""
        self._env.close()


def _grade(task: Task, verdict: Verdict | None) -> Grade:
    """The grade of an episode's patch. Tests that the patch keeps from finishing have not passed."""
    if verdict is None:
        return Grade(task_id=task.id, outcome="empty")
    found = grade_of(task, verdict)
    return found.model_copy(update={"outcome": "unresolved"}) if verdict.run.result.timed_out else found

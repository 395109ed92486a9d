"""Where an episode is played: in this process, or on a node of a cluster.

The agent's loop, its policy, its journal and its budget stay with whoever runs it. Only the environment, that is the
sandbox and the tools in it, is somewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from gumshoe.collect.config import RayConfig
from gumshoe.env.config import SandboxConfig
from gumshoe.env.debug_env import DebugEnv
from gumshoe.env.grading import Grade, grade
from gumshoe.env.sandboxes.client import WardenSandbox
from gumshoe.records import ContextPack, Decision, Observation, Oracle, StopReason, Task, ToolCall, ToolSchema

__all__ = ["Environment", "Here", "MakePlace", "Opening", "Outcome", "Place", "open_places"]


@dataclass(frozen=True)
class Opening:
    """What an environment says of itself once its sandbox stands. `decisions` holds the kind of every tool."""

    schemas: tuple[ToolSchema, ...]
    instructions: str
    decisions: Mapping[str, Decision]
    sandbox: str
    image_digest: str | None


@dataclass(frozen=True)
class Outcome:
    """What one call led to."""

    observation: Observation
    reward: float
    stop: StopReason | None
    context_pack: ContextPack | None


class Environment(Protocol):
    """One episode's environment, as the agent's loop needs it. Everything raises SandboxError where it breaks."""

    def reset(self, seed: int) -> Opening:
        """Starts the sandbox. Raises SandboxError, TaskError and ConfigError as `DebugEnv.reset`."""
        ...

    def step(self, call: ToolCall) -> Outcome:
        """Carries out one call."""
        ...

    def patch(self) -> str:
        """What was changed so far, as a unified diff."""
        ...

    def tests_pass(self) -> bool:
        """Runs the tests."""
        ...

    def give_up(self) -> None:
        """Ends the call that another thread waits for, so that `close` need not wait for it."""
        ...

    def close(self) -> None:
        """Removes the sandbox. Idempotent."""
        ...


class Place(Protocol):
    """Where one worker plays its episodes, one after the other."""

    def ready(self) -> bool:
        """Whether an episode can be begun; may wait a moment. Raises GumshoeError where none ever can."""
        ...

    def environment(self, task: Task, tools: Sequence[str], sandbox: SandboxConfig, *, trusted: bool) -> Environment:
        """The environment of one episode; nothing is started before its `reset`."""
        ...

    def grade(self, task: Task, oracle: Oracle, patch: str, sandbox: SandboxConfig) -> Grade:
        """What the hidden tests say of a patch, in a sandbox of their own. Raises SandboxError as an environment."""
        ...

    def close(self) -> None:
        """Gives back what it holds. Idempotent."""
        ...


MakePlace = Callable[[], Place]


class Here:
    """In the process that runs the command."""

    def ready(self) -> bool:
        """Always."""
        return True

    def environment(self, task: Task, tools: Sequence[str], sandbox: SandboxConfig, *, trusted: bool) -> Environment:
        """An environment in this process."""
        return LocalEnvironment(task, tools, sandbox, trusted=trusted)

    def grade(self, task: Task, oracle: Oracle, patch: str, sandbox: SandboxConfig) -> Grade:
        """Grades in this process."""
        return grade(task, oracle, patch, sandbox)

    def close(self) -> None:
        """Nothing is held."""


@contextmanager
def open_places(runner: str, ray: RayConfig) -> Generator[MakePlace]:
    """What makes each worker's place: `threads` stay in this process, `ray` uses the nodes of a cluster.

    Raises:
        ConfigError: there is no cluster.
    """
    if runner == "threads":
        yield Here
        return
    from gumshoe.collect.cluster import ray_places

    with ray_places(ray) as make_place:
        yield make_place


class LocalEnvironment:
    """A `DebugEnv`, reduced to what crosses from one process to another."""

    def __init__(self, task: Task, tools: Sequence[str], sandbox: SandboxConfig, *, trusted: bool) -> None:
        self._env = DebugEnv(task, tools=tools, sandbox=sandbox, trusted=trusted)

    def reset(self, seed: int) -> Opening:
        """Starts the sandbox."""
        self._env.reset(seed=seed)
        toolbox, sandbox = self._env.toolbox, self._env.sandbox
        return Opening(
            schemas=toolbox.schemas,
            instructions=toolbox.instructions,
            decisions={name: tool.decision for name, tool in toolbox.tools.items()},
            sandbox=sandbox.backend,
            image_digest=getattr(sandbox, "image_digest", None),
        )

    def step(self, call: ToolCall) -> Outcome:
        """Carries out one call."""
        _, reward, _, _, info = self._env.step(call)
        return Outcome(info["observation"], reward, info["stop"], info.get("context_pack"))

    def patch(self) -> str:
        """What was changed so far."""
        return self._env.patch()

    def tests_pass(self) -> bool:
        """Runs the tests."""
        return self._env.workspace.run_tests().passed

    def give_up(self) -> None:
        """Ends the call that another thread waits for."""
        sandbox = self._env.sandbox
        if isinstance(sandbox, WardenSandbox):
            sandbox.give_up()

    def close(self) -> None:
        """Removes the sandbox."""
        self._env.close()

"""Where the environments of a run are: in this process, or on the nodes of a cluster.

The state machine of an episode, its policy, its journal and its budget stay with whoever runs it. Only the
environment, that is, the sandbox and the tools in it, may be on another machine.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Protocol

from gumshoe.collect.config import RayConfig
from gumshoe.env.debug_env import DebugEnv
from gumshoe.records import Task

__all__ = ["EnvironmentFactory", "InProcess", "MakeFactory", "open_factories"]


class EnvironmentFactory(Protocol):
    """Makes the environments of one worker's episodes, one after the other."""

    def ready(self) -> bool:
        """Whether an episode can begin; may wait a moment. Raises GumshoeError if none ever can."""
        ...

    def environment(self, task: Task, **options: Any) -> DebugEnv:
        """The environment of one episode, with the arguments of `DebugEnv`; nothing starts before its `reset`."""
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

    def environment(self, task: Task, **options: Any) -> DebugEnv:
        """An environment in this process."""
        return DebugEnv(task, **options)

    def close(self) -> None:
        """Nothing is held."""


@contextmanager
def open_factories(runner: str, ray: RayConfig) -> Generator[MakeFactory]:
    """What makes each worker's factory: `threads` stays in this process, `ray` uses the nodes of a cluster.

    Raises:
        ConfigError: there is no cluster.
    """
    if runner == "threads":
        yield InProcess
        return
    from gumshoe.collect.run.cluster import ray_factories

    with ray_factories(ray) as make_factory:
        yield make_factory

"""Episodes on the nodes of a Ray cluster, each of which uses its own sandboxes.

An actor on a node, the host, holds the environment of one episode at a time. The policy, the journal and the run
folder stay in the process that runs the command: keys never leave it, and every completion is on the same disk as
with threads. When a node dies, its episodes fail with a SandboxError; their completions are in their journals, and
another node replays them.

What a node needs: the same version of Gumshoe, a sandbox that works there, and, for tasks that come as a folder, that
folder at the same path.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, TypeVar, cast

import ray
from ray.exceptions import RayActorError, RayError, RayTaskError

from gumshoe import __version__
from gumshoe.collect.config import RayConfig
from gumshoe.collect.episode.episode import AnyEnv
from gumshoe.env.debug_env import DebugEnv
from gumshoe.errors import ConfigError, SandboxError
from gumshoe.records import Task

log = logging.getLogger(__name__)
POLL_S = 0.25
SHUTDOWN_TIMEOUT_S = 10.0
CONNECT_TIMEOUT_S = 10.0
MAX_START_FAILURES = 3
"""How many hosts in a row may die before answering once."""
STORE_BYTES = 80 << 20
"""Size of the object store of a cluster of our own; calls and observations are small and do not go through it."""
T = TypeVar("T")


@contextmanager
def ray_factories(config: RayConfig) -> Generator[Callable[[], RayFactory]]:
    """Joins the cluster, or starts one on this machine, and yields a function that makes a worker's factory in it.

    Raises ConfigError if there is no cluster at the address.
    """
    ours = not ray.is_initialized()
    if ours:
        _join(config)
    try:
        yield lambda: RayFactory(config)
    finally:
        if ours:
            ray.shutdown()


def _join(config: RayConfig) -> None:
    _check_reachable(config.address)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    own: dict[str, Any] = {"include_dashboard": False, "object_store_memory": STORE_BYTES}
    try:
        ray.init(
            address=config.address or "local",
            log_to_driver=False,
            logging_level=logging.ERROR,
            **({} if config.address else own),
        )
    except (RayError, ConnectionError, RuntimeError, ValueError, OSError) as error:
        reason = " ".join(str(error).split())
        raise ConfigError(f"no Ray cluster responds at ray.address {config.address}: {reason}") from None


def _check_reachable(address: str | None) -> None:
    """Raises ConfigError if nothing listens at HOST:PORT; Ray itself would keep trying for minutes."""
    host, colon, port = (address or "").rpartition(":")
    if not colon or not port.isdecimal() or "/" in host:
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_TIMEOUT_S).close()
    except OSError as error:
        raise ConfigError(f"no Ray cluster responds at ray.address {address}: {error}") from None


class Host:
    """What runs on a node: the environment of one episode at a time."""

    def __init__(self) -> None:
        self._environment: DebugEnv | None = None
        self._backends: set[str] = set()

    def version(self) -> str:
        """The version of Gumshoe on the node."""
        return __version__

    def reset(self, task: Task, options: dict[str, Any], seed: int) -> None:
        """Begins an episode; an earlier one that was left behind is closed. The oracle never enters a sandbox."""
        self.close()
        self._environment = DebugEnv(task, **options)
        self._environment.reset(seed=seed)
        self._backends.add(self._environment.sandbox.backend)

    def call(self, method: str, *arguments: Any) -> Any:
        """Calls a method of the environment; `give_up` comes from another thread."""
        if self._environment is None:
            raise SandboxError("the host has no episode in progress")
        return getattr(self._environment, method)(*arguments)

    def close(self) -> None:
        """Ends the episode."""
        environment, self._environment = self._environment, None
        if environment is not None:
            environment.close()

    def shutdown(self) -> None:
        """Ends the episode, and removes the containers that dead hosts on the same machine have left."""
        from gumshoe.env.sandboxes.engine import ENGINES, reap_orphans

        self.close()
        for kind in self._backends & ENGINES.keys():
            with suppress(SandboxError):
                reap_orphans(ENGINES[kind])


class RayFactory:
    """One worker's host. A dead one is replaced, on another node if its node has died."""

    def __init__(self, config: RayConfig) -> None:
        self._actors = ray.remote(Host).options(
            num_cpus=config.cpus,
            scheduling_strategy="SPREAD",
            max_restarts=0,
            max_task_retries=0,
            max_concurrency=2,  # a call, and the request to end it
        )
        self._host: Any = None
        self._version: Any = None
        self._start_failures = 0

    def ready(self) -> bool:
        """Whether a host is running; waits a moment for one.

        Raises ConfigError if the nodes have a different version of Gumshoe, SandboxError if hosts die as they start.
        """
        if self._host is not None and self._version is None:
            return True
        if self._host is None:
            self._host = self._actors.remote()
            self._version = self._host.version.remote()
        done, _ = ray.wait([self._version], timeout=POLL_S)
        return bool(done) and self._started()

    def environment(self, task: Task, **options: Any) -> AnyEnv:
        """The environment of one episode, on the host's node."""
        return cast("AnyEnv", RemoteEnvironment(self, task, options))

    def call(self, method: str, *arguments: Any) -> Any:
        """Calls a method of the host and waits for its answer. Raises SandboxError if the host is lost."""
        if self._host is None:
            raise SandboxError("the node of this episode is lost")
        try:
            return _answer(getattr(self._host, method).remote(*arguments))
        except RayActorError as error:
            self._host = None
            raise SandboxError(f"the node of this episode is lost: {_first_line(error)}") from None

    def close_episode(self) -> None:
        """Ends the host's episode, if the host is still running."""
        if self._host is not None:
            with suppress(SandboxError):
                self.call("close")

    def close(self) -> None:
        """Ends the host. Idempotent."""
        host, self._host = self._host, None
        if host is None:
            return
        with suppress(RayError):
            ray.wait([host.shutdown.remote()], timeout=SHUTDOWN_TIMEOUT_S)
            ray.kill(host)

    def _started(self) -> bool:
        version_reference, self._version = self._version, None
        try:
            version = _answer(version_reference)
        except RayActorError as error:
            self._host = None
            self._start_failures += 1
            if self._start_failures >= MAX_START_FAILURES:
                raise SandboxError(f"no host can be started on the Ray cluster: {_first_line(error)}") from None
            return False
        self._start_failures = 0
        if version != __version__:
            raise ConfigError(f"a node of the Ray cluster has gumshoe {version}, this is {__version__}: install one")
        return True


class RemoteEnvironment:
    """A `DebugEnv` on a factory's host: what is called here is carried out there."""

    def __init__(self, factory: RayFactory, task: Task, options: dict[str, Any]) -> None:
        self._factory = factory
        self._task = task
        self._options = options

    @property
    def unwrapped(self) -> RemoteEnvironment:
        """Itself: it wraps nothing."""
        return self

    def reset(self, *, seed: int, options: dict[str, Any] | None = None) -> None:
        """Starts the sandbox on the node."""
        del options
        self._factory.call("reset", self._task, self._options, seed)

    def give_up(self) -> None:
        """Ends the call that another thread waits for."""
        with suppress(SandboxError):
            self._factory.call("call", "give_up")

    def close(self) -> None:
        """Removes the sandbox."""
        self._factory.close_episode()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_") or not callable(getattr(DebugEnv, name, None)):
            raise AttributeError(name)
        return partial(self._factory.call, "call", name)


def _answer(reference: Any) -> Any:
    """The answer, or the host's own exception as it was raised there."""
    try:
        return ray.get(reference)
    except RayTaskError as error:
        raise error.cause from None


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]

"""Opening a sandbox for a task: picking the backend, starting it, putting the repository in."""

from __future__ import annotations

import atexit
import contextlib
import functools
import logging
import os
import threading
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from gumshoe.env.config import SandboxConfig
from gumshoe.env.sandboxes.backend import Backend
from gumshoe.env.sandboxes.client import WardenSandbox
from gumshoe.env.sandboxes.host.python_mounts import distribution_paths
from gumshoe.env.sandboxes.link import Link, WardenConnection
from gumshoe.env.sandboxes.pool import PreparedSandboxes, SandboxPool, closed_later
from gumshoe.env.sandboxes.staging import stage
from gumshoe.env.tasks.casebook import is_built_in
from gumshoe.errors import ConfigError, SandboxClosed, SandboxError, TaskError
from gumshoe.records import Task, WorkspaceSpec

__all__ = [
    "MOST_POOLS",
    "Choice",
    "choose",
    "close_pools",
    "is_poolable",
    "open_sandbox",
    "require_sandbox",
    "unavailable_reason",
]

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _PoolKey:
    """What the sandboxes of a pool have in common."""

    process: int
    kind: str
    verdict: bool
    workdir: str
    environment: str | None
    config_json: str


_pools: dict[_PoolKey, SandboxPool] = {}
"""The one used last comes last."""
MOST_POOLS = 16
"""With one more, the pool that was not used for longest is closed: tasks may have any number of environments."""
_prepared: dict[tuple[int, int], PreparedSandboxes] = {}
"""By process and size."""
_pools_lock = threading.Lock()
VARIANTS = 2
"""How many sandboxes one verdict takes at a time."""
ORDER = ("docker", "podman", "bubblewrap", "local")


@dataclass(frozen=True)
class Choice:
    """The backend that was picked, and a sentence that says so and why."""

    kind: str
    sentence: str


def open_sandbox(
    task: Task, config: SandboxConfig | None = None, *, trusted: bool, verdict: bool = False, again: bool = False
) -> WardenSandbox:
    """Starts a sandbox with the task's repository in it.

    Args:
        again: the task may be opened several times; where the config wants warm sandboxes, the next one is prepared
            ahead.
        verdict: it is for the verifier, which has a pool of its own: no sandbox that an agent had is ever in it.
        trusted: what will be run there besides the task's own code is decided by a built-in script or a person, not by
            a model. The task's own code is trusted where it is built in (see `is_built_in`).

    Raises:
        ConfigError: the only sandbox there is does not isolate, and the policy or the task is not trusted; or a package
            that it should have is not installed.
        SandboxError: the sandbox does not work here, or could not be started, or its image could not be pulled.
        TaskError: the task's repository or image is missing, or its setup fails.
    """
    config = config or SandboxConfig()
    choice = choose(task, config, trusted=trusted)
    log.debug("%s", choice.sentence)
    connect = functools.partial(_link, choice.kind, task, config, verdict)
    if not again or choice.kind == "local" or config.pool == 0 or is_poolable(task, config):
        return _open(choice.kind, task, config, connect)
    with _pools_lock:
        prepared = _prepared_ahead(config.pool)
    key = f"{choice.kind} {verdict} {task.hash} {config.model_dump_json()}"
    return prepared.take(
        key, lambda: _open(choice.kind, task, config, lambda: closed_later(connect(), prepared.closers))
    )


def _open(kind: str, task: Task, config: SandboxConfig, connect: Callable[[], WardenConnection]) -> WardenSandbox:
    if kind in ("docker", "podman"):
        _provide_image(kind, task, config)
    sandbox = WardenSandbox(connect(), test_server=config.test_server)
    try:
        stage(sandbox, task, config)
    except BaseException:
        sandbox.close()
        raise
    return sandbox


def _link(kind: str, task: Task, config: SandboxConfig, verdict: bool) -> WardenConnection:
    """A warm sandbox where the config wants a pool and the task can use one, else one of its own."""
    if kind != "local" and is_poolable(task, config):
        space = task.workspace
        key = _PoolKey(os.getpid(), kind, verdict, space.workdir, space.environment, config.model_dump_json())
        return _lease(key)
    return Link(_backend(kind, task, config), config.output_kb << 10)


def is_poolable(task: Task, config: SandboxConfig) -> bool:
    """Whether the config wants warm sandboxes and the task can use them: it comes as a folder and needs no setup."""
    return config.pool > 0 and task.workspace.path is not None and not task.setup


def _lease(key: _PoolKey) -> WardenConnection:
    """A sandbox of the process's pool for such sandboxes."""
    while True:
        with _pools_lock:
            pool = _pools.pop(key, None) or _make_pool(key)
            _pools[key] = pool
            surplus = [_pools.pop(old) for old in list(_pools)[:-MOST_POOLS]]
        for unused in surplus:
            _close(unused)
        try:
            return pool.lease()
        except SandboxClosed:
            with _pools_lock:
                if _pools.get(key) is pool:
                    raise


def _make_pool(key: _PoolKey) -> SandboxPool:
    """A pool for such sandboxes, closed when the process ends."""
    config = SandboxConfig.model_validate_json(key.config_json)
    blank = Task(
        id="blank",
        source="pool",
        problem_statement="",
        workspace=WorkspaceSpec(path="/", workdir=key.workdir, environment=key.environment),
        entrypoint=("true",),
    )

    def start() -> Link:
        return Link(_backend(key.kind, blank, config), config.output_kb << 10)

    pool = SandboxPool(start, config.pool * (VARIANTS if key.verdict else 1))
    atexit.register(pool.close)
    return pool


def _prepared_ahead(limit: int) -> PreparedSandboxes:
    """The process's sandboxes that are prepared ahead, closed when the process ends. Called with the lock held."""
    key = (os.getpid(), limit)
    if key not in _prepared:
        _prepared[key] = PreparedSandboxes(limit)
        atexit.register(_prepared[key].close)
    return _prepared[key]


def close_pools(environments: Collection[str | None] | None = None) -> None:
    """Closes every warm sandbox that is not in use, now instead of when the process ends.

    Args:
        environments: only those of tasks with one of these environments; whoever waits for one of the others gets it.
    """
    with _pools_lock:
        keys = [key for key in _pools if environments is None or key.environment in environments]
        closing: list[SandboxPool | PreparedSandboxes] = [_pools.pop(key) for key in keys]
        if environments is None:
            closing.extend(_prepared.values())
            _prepared.clear()
    for pool in closing:
        _close(pool)


def _close(pool: SandboxPool | PreparedSandboxes) -> None:
    pool.close()
    atexit.unregister(pool.close)


def choose(task: Task | None, config: SandboxConfig, *, trusted: bool) -> Choice:
    """Picks the backend for a task (None: any built-in one), and pulls nothing. Raises ConfigError, SandboxError and
    TaskError as `open_sandbox` does.
    """
    image = task.workspace.image if task is not None and task.workspace.path is None else None
    if task is not None and image is not None and config.kind in ("auto", "docker", "podman"):
        _check_image(task.id, image, config)
    if config.kind == "auto":
        choice = _first_that_works(task, config)
    else:
        reason = unavailable_reason(config.kind, task, config)
        if reason is not None:
            raise SandboxError(f"sandbox {config.kind}: {reason} (`gumshoe doctor` shows which others work)")
        choice = Choice(config.kind, f"sandbox {config.kind}, as configured")
    if choice.kind == "local" and not config.unsafe and not (trusted and (task is None or is_built_in(task))):
        if config.kind == "auto":
            raise ConfigError(_nothing_works(task, config))
        raise ConfigError(
            "the local sandbox does not isolate, so it accepts only trusted scripts on built-in tasks: use "
            "sandbox.kind=docker, podman or bubblewrap, or set sandbox.unsafe=true (--unsafe) if you accept that"
        )
    if choice.kind == "bubblewrap":
        distribution_paths(config.packages)
    return choice


def require_sandbox(tasks: Iterable[Task], config: SandboxConfig, *, trusted: bool) -> None:
    """Raises ConfigError or SandboxError if there is no sandbox for one of the tasks; a missing image is no reason."""
    for task in tasks:
        with contextlib.suppress(TaskError):
            choose(task, config, trusted=trusted)


def _provide_image(kind: str, task: Task, config: SandboxConfig) -> None:
    """Pulls the image that the task or the config names, where it has to be."""
    from gumshoe.env.sandboxes.containers.engine import ENGINES
    from gumshoe.env.sandboxes.containers.pull import provide_image

    own = task.workspace.image
    try:
        provide_image(own or config.image, ENGINES[kind], config)
    except (SandboxError, TaskError) as error:
        if own is not None:
            raise type(error)(f"task {task.id}: {error}") from None
        raise SandboxError(f"sandbox {kind}: {error}") from None


def _check_image(task_id: str, image: str, config: SandboxConfig) -> None:
    """Raises TaskError where the engine answers, does not have the task's image, and may not pull it."""
    from gumshoe.env.sandboxes.containers.engine import ENGINES, image_is_missing
    from gumshoe.env.sandboxes.containers.pull import is_pullable

    kind = "docker" if config.kind == "auto" else config.kind
    if not is_pullable(image, config) and image_is_missing(image, ENGINES[kind]):
        raise TaskError(f"task {task_id}: its image {image} is not here: {kind} pull {image}")


def unavailable_reason(kind: str, task: Task | None, config: SandboxConfig) -> str | None:
    """Why a backend cannot take this task (None: any task) on this machine; None when it can, maybe after a pull."""
    if kind not in ("docker", "podman") and task is not None and task.workspace.path is None:
        return f"task {task.id} comes as the image {task.workspace.image}, which needs docker or podman"
    if kind == "local" and task is not None and task.workspace.environment is not None:
        return f"task {task.id} has an environment of its own, which needs docker, podman or bubblewrap"
    return _backend_reason(kind, task, config)


def _first_that_works(task: Task | None, config: SandboxConfig) -> Choice:
    for kind in ORDER:
        if unavailable_reason(kind, task, config) is None:
            return Choice(kind, f"sandbox {kind}, picked automatically")
    raise SandboxError(_nothing_works(task, config))


def _nothing_works(task: Task | None, config: SandboxConfig) -> str:
    """What to do where no backend that isolates takes the task."""
    reason = unavailable_reason("bubblewrap", task, config)
    if task is not None and task.workspace.path is None:
        return f"{reason}, and neither works here (`gumshoe doctor` says why)"
    return (
        f"no sandbox works here. bubblewrap: {reason}. Docker or Podman would do as well (`gumshoe doctor` says what "
        "they need); sandbox.unsafe=true accepts programs that are not isolated"
    )


def _backend(kind: str, task: Task, config: SandboxConfig) -> Backend:
    """A backend of a kind that the config can name."""
    match kind:
        case "local":
            from gumshoe.env.sandboxes.local import LocalBackend

            return LocalBackend(config)
        case "bubblewrap":
            from gumshoe.env.sandboxes.bubblewrap import BubblewrapBackend

            return BubblewrapBackend(config, task.workspace.workdir, task.workspace.environment)
        case _:
            from gumshoe.env.sandboxes.containers.engine import ENGINES
            from gumshoe.env.sandboxes.docker import DockerBackend

            return DockerBackend(task, config, ENGINES[kind])


def _backend_reason(kind: str, task: Task | None, config: SandboxConfig) -> str | None:
    """Why a kind does not work on this machine; None if it works."""
    match kind:
        case "local":
            return None
        case "bubblewrap":
            from gumshoe.env.sandboxes.host.bwrap import bubblewrap_unavailable_reason

            return bubblewrap_unavailable_reason()
        case _:
            from gumshoe.env.sandboxes.containers.engine import ENGINES, engine_unavailable_reason, image_is_missing
            from gumshoe.env.sandboxes.containers.pull import is_pullable

            image = (task and task.workspace.image) or config.image
            if is_pullable(image, config) and image_is_missing(image, ENGINES[kind]):
                return None
            return engine_unavailable_reason(ENGINES[kind], image)

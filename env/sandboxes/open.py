"""Opening a sandbox for a task: picking the backend, starting it, putting the repository in.

`compile_tests` makes the byte code that the repositories of later sandboxes come with (see `staging`).
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable

from gumshoe.env.config import SandboxConfig
from gumshoe.env.sandboxes.backend import Backend
from gumshoe.env.sandboxes.channel import Link
from gumshoe.env.sandboxes.client import WardenSandbox
from gumshoe.env.sandboxes.host.python_mounts import distribution_paths
from gumshoe.env.sandboxes.staging import byte_code_place, is_byte_code_of_tests, keep_byte_code, stage
from gumshoe.env.tasks.casebook import is_built_in
from gumshoe.errors import ConfigError, SandboxError, TaskError
from gumshoe.records import Task

log = logging.getLogger(__name__)

ORDER = ("docker", "podman", "bubblewrap", "local")
"""The kinds in which `auto` tries them."""
ISOLATION = {
    "docker": "container without network",
    "podman": "container without network",
    "bubblewrap": "namespaces without network",
    "local": "none: for trusted scripts on built-in tasks only",
}
"""What keeps programs from the rest of the machine, for `gumshoe doctor`."""
MOST_BYTE_CODE = 32 << 20
"""Bytes of byte code that are kept of one project's tests."""


def open_sandbox(task: Task, config: SandboxConfig | None = None, *, trusted: bool) -> WardenSandbox:
    """Starts a sandbox with the task's repository in it.

    Args:
        trusted: what will be run there besides the task's own code is decided by a built-in script or a person, not by
            a model. The task's own code is trusted where it is built in (see `is_built_in`).

    Raises:
        ConfigError: the only sandbox there is does not isolate, and the policy or the task is not trusted; or a package
            that it should have is not installed.
        SandboxError: the sandbox does not work here, or could not be started, or its image could not be pulled.
        TaskError: the task's repository or image is missing, or its setup fails.
    """
    config = config or SandboxConfig()
    kind = choose(task, config, trusted=trusted)
    log.debug("task %s: sandbox %s", task.id, kind)
    backend = _backend(kind, task, config)
    sandbox = WardenSandbox(Link(backend, config.output_kb << 10), test_server=config.test_server)
    try:
        stage(sandbox, task, config.setup_timeout_s)
    except BaseException:
        sandbox.close()
        raise
    return sandbox


def choose(task: Task | None, config: SandboxConfig, *, trusted: bool) -> str:
    """The kind of sandbox that a task gets (None: any built-in one); pulls nothing.

    Raises ConfigError, SandboxError and TaskError as `open_sandbox` does.
    """
    image = task.workspace.image if task is not None and task.workspace.path is None else None
    if task is not None and image is not None and config.kind in ("auto", "docker", "podman"):
        _check_image(task.id, image, config)
    if config.kind == "auto":
        kind = next((kind for kind in ORDER if unavailable_reason(kind, task, config) is None), None)
        if kind is None:
            raise SandboxError(_nothing_works(task, config))
    else:
        kind, reason = config.kind, unavailable_reason(config.kind, task, config)
        if reason is not None:
            raise SandboxError(f"sandbox {kind}: {reason} (`gumshoe doctor` shows which others work)")
    if kind == "local" and not config.unsafe and not (trusted and (task is None or is_built_in(task))):
        if config.kind == "auto":
            raise ConfigError(_nothing_works(task, config))
        raise ConfigError(
            "the local sandbox does not isolate, so it accepts only trusted scripts on built-in tasks: use "
            "sandbox.kind=docker, podman or bubblewrap, or set sandbox.unsafe=true (--unsafe) if you accept that"
        )
    if kind == "bubblewrap":
        distribution_paths(config.packages)
    return kind


def require_sandbox(tasks: Iterable[Task], config: SandboxConfig, *, trusted: bool) -> None:
    """Raises ConfigError or SandboxError if there is no sandbox for one of the tasks; a missing image is no reason."""
    for task in tasks:
        with contextlib.suppress(TaskError):
            choose(task, config, trusted=trusted)


def _check_image(task_id: str, image: str, config: SandboxConfig) -> None:
    """Raises TaskError where the engine answers, does not have the task's image, and may not pull it."""
    from gumshoe.env.sandboxes.engine import ENGINES, image_is_missing

    kind = "docker" if config.kind == "auto" else config.kind
    if not _may_pull(image, config) and image_is_missing(image, ENGINES[kind]):
        raise TaskError(f"task {task_id}: its image {image} is not here: {kind} pull {image}")


def _may_pull(image: str, config: SandboxConfig) -> bool:
    """Whether an image may be pulled. The default image is built here, and a stranger could publish one of its name."""
    return config.pull == "missing" and image != SandboxConfig().image


def unavailable_reason(kind: str, task: Task | None, config: SandboxConfig) -> str | None:
    """Why a backend cannot take this task (None: any task) on this machine; None when it can, maybe after a pull."""
    if kind not in ("docker", "podman") and task is not None and task.workspace.path is None:
        return f"task {task.id} comes as the image {task.workspace.image}, which needs docker or podman"
    if kind == "local" and task is not None and task.workspace.environment is not None:
        return f"task {task.id} has an environment of its own, which needs docker, podman or bubblewrap"
    match kind:
        case "local":
            return None
        case "bubblewrap":
            from gumshoe.env.sandboxes.host.bwrap import bubblewrap_unavailable_reason

            return bubblewrap_unavailable_reason()
        case _:
            from gumshoe.env.sandboxes.engine import ENGINES, engine_unavailable_reason, image_is_missing

            image = (task and task.workspace.image) or config.image
            if _may_pull(image, config) and image_is_missing(image, ENGINES[kind]):
                return None
            return engine_unavailable_reason(ENGINES[kind], image)


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
    """A backend of a kind that the config can name; its image is pulled if it is missing and may be."""
    match kind:
        case "local":
            from gumshoe.env.sandboxes.local import LocalBackend

            return LocalBackend(config)
        case "bubblewrap":
            from gumshoe.env.sandboxes.bubblewrap import BubblewrapBackend

            return BubblewrapBackend(config, task.workspace.workdir, task.workspace.environment)
        case _:
            from gumshoe.env.sandboxes.docker import DockerBackend
            from gumshoe.env.sandboxes.engine import ENGINES, pull_if_missing

            backend = DockerBackend(task, config, ENGINES[kind])
            if _may_pull(backend.image, config):
                try:
                    pull_if_missing(backend.image, ENGINES[kind])
                except TaskError as error:
                    if task.workspace.image is None:  # The config names it.
                        raise SandboxError(f"sandbox {kind}: {error}") from None
                    raise TaskError(f"task {task.id}: {error}") from None
            return backend


def compile_tests(tasks: Iterable[Task], config: SandboxConfig) -> None:
    """Has pytest collect the tests of each project once, without the task's bug, and keeps the byte code.

    What is known already is skipped, and so is a task without such byte code. Raises as `open_sandbox`.
    """
    missing = {place: task for task in tasks if (place := byte_code_place(task)) is not None and not place.is_file()}
    for place, task in missing.items():
        keep_byte_code(place, _compiled(task, config))


def _compiled(task: Task, config: SandboxConfig) -> dict[str, bytes]:
    """Byte code by its path; nothing where it is too much."""
    clean = task.model_copy(update={"workspace": task.workspace.model_copy(update={"overlay": {}})})
    argv = [*task.entrypoint, "--collect-only"]
    with open_sandbox(clean, config, trusted=True) as sandbox:
        sandbox.run(argv, env={"PYTHONDONTWRITEBYTECODE": ""}, timeout=task.limits.command_timeout_s)
        found = [entry for entry in sandbox.walk() if entry.kind == "file" and is_byte_code_of_tests(entry.path)]
        if sum(entry.size for entry in found) > MOST_BYTE_CODE:
            return {}
        return {entry.path: sandbox.read_file(entry.path) for entry in found}

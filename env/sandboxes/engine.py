"""Container engines: connecting to Docker or Podman, clear errors when none answers, their images, and whose container
is whose.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import socket
import sys
import threading
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker
from docker.errors import APIError, DockerException, ImageNotFound, NotFound
from docker.types import Ulimit
from requests.exceptions import RequestException

from gumshoe.env.sandboxes.host.owners import identity, is_running
from gumshoe.errors import SandboxError, TaskError

HOST_LABEL = "gumshoe.host"
PROCESS_LABEL = "gumshoe.process"
TIMEOUT_S = 120
OPEN_FILES, PROCESSES = 4096, 16384
NO_IMAGE = re.compile(r"no such image|image not known", re.IGNORECASE)
NOT_IN_REGISTRY = re.compile(
    r"manifest unknown|manifest .*not found|name unknown|pull access denied|invalid reference|repository name must",
    re.IGNORECASE,
)
"""What engines say where no registry has an image of that name, for those who ask."""


@dataclass(frozen=True)
class Engine:
    """A container engine that speaks Docker's API.

    Attributes:
        name: as in the sandbox config.
        title: as people write it.
        variable: the environment variable that says where it listens.
    """

    name: str
    title: str
    variable: str

    @property
    def address(self) -> str:
        """Where it listens."""
        return os.environ.get(self.variable) or _default_address(self)


DOCKER = Engine("docker", "Docker daemon", "DOCKER_HOST")
PODMAN = Engine("podman", "Podman service", "CONTAINER_HOST")
ENGINES = {engine.name: engine for engine in (DOCKER, PODMAN)}


def _default_address(engine: Engine) -> str:
    if engine is DOCKER:
        return "unix:///var/run/docker.sock"
    if os.geteuid() == 0:
        return "unix:///run/podman/podman.sock"
    return f"unix://{os.environ.get('XDG_RUNTIME_DIR') or f'/run/user/{os.geteuid()}'}/podman/podman.sock"


def connect(engine: Engine = DOCKER) -> docker.DockerClient:
    """A connection to the engine, for the caller to close. Raises SandboxError when none answers."""
    where = engine.address
    try:
        return _client(engine, where, _api_version(engine, where))
    except DockerException as error:
        raise SandboxError(
            f"no {engine.title} answers at {where} ({describe_error(error)}); {_remedy(engine, error)}"
        ) from None


def _remedy(engine: Engine, error: Exception) -> str:
    """What to do about an engine that does not answer."""
    if engine is PODMAN:
        return "start it with `podman system service --time 0`"
    if "Permission denied" in str(error):
        return "join its group with `sudo usermod -aG docker $USER` and log in again"
    return "start it with `sudo systemctl start docker`"


def _client(engine: Engine, where: str, version: str | None) -> docker.DockerClient:
    if engine is DOCKER:  # The SDK knows more of Docker's variables, such as those for TLS.
        return docker.from_env(timeout=TIMEOUT_S, version=version)
    return docker.DockerClient(base_url=where, timeout=TIMEOUT_S, version=version)


@functools.cache
def _api_version(engine: Engine, where: str) -> str:
    """The version of the API that the engine and this SDK agree on; asked once for each engine."""
    path = where.removeprefix("unix://")
    if where.startswith("unix://"):  # Tried by hand first: the SDK leaves its socket open where nobody listens.
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(path)
            except OSError as error:
                raise DockerException(error.strerror or str(error)) from None
    with contextlib.closing(_client(engine, where, None)) as client:
        return str(client.api.api_version)


@contextlib.contextmanager
def daemon_errors(doing: str) -> Generator[None]:
    """Turns what the daemon says into one SandboxError."""
    try:
        yield
    except ImageNotFound as error:
        forget_found_images()  # Somebody has removed it: the next try looks again, and may pull it.
        raise SandboxError(f"{doing}: {describe_error(error)}") from None
    except (DockerException, RequestException, OSError) as error:
        raise SandboxError(f"{doing}: {describe_error(error)}") from None


def engine_unavailable_reason(engine: Engine, image: str) -> str | None:
    """Why the engine cannot run this image here; None where it can, which is found out once."""
    try:
        _find_image(engine, image)
    except SandboxError as error:
        text = str(error)
        if NO_IMAGE.search(text):
            made = ", or make image for gumshoe-python"
            if engine is PODMAN:
                made = f", or docker save {image} | podman load"
            return f"the image {image} is not here ({engine.name} pull {image}{made})"
        return text
    return None


def image_is_missing(image: str, engine: Engine = DOCKER) -> bool:
    """Whether the engine answers and does not have the image."""
    try:
        _find_image(engine, image)
    except SandboxError as error:
        return bool(NO_IMAGE.search(str(error)))
    return False


@functools.cache
def _find_image(engine: Engine, image: str) -> None:
    with daemon_errors(f"the {engine.title} refuses"), contextlib.closing(connect(engine)) as client:
        client.images.get(image)


_pulling = threading.Lock()


def pull_if_missing(image: str, engine: Engine) -> None:
    """Has the engine pull an image that it does not have: one at a time, as threads may want the same one.

    Raises:
        TaskError: there is no such image.
        SandboxError: it cannot be pulled, in the engine's words.
    """
    if not image_is_missing(image, engine):
        return
    with _pulling:
        if not image_is_missing(image, engine):
            return
        print(f"pulling {image}", file=sys.stderr)
        try:
            with contextlib.closing(connect(engine)) as client:
                events: Iterable[dict[str, Any]] = client.api.pull(image, stream=True, decode=True)
                errors = [str(event["error"]) for event in events if "error" in event]
        except (DockerException, RequestException, OSError) as error:
            errors = [describe_error(error)]
    if errors:
        kind = TaskError if NOT_IN_REGISTRY.search(errors[0]) else SandboxError
        raise kind(f"the image {image} cannot be pulled: {errors[0]}")


def forget_found_images() -> None:
    """Makes the next question look again which images are here."""
    _find_image.cache_clear()


def image_digest(image: str, engine: Engine = DOCKER) -> str | None:
    """The image's id, a digest of its content. Raises SandboxError."""
    with daemon_errors(f"image {image}"), contextlib.closing(connect(engine)) as client:
        return client.images.get(image).id


def ulimits(engine: Engine) -> list[Ulimit]:
    """The limits of each process in a container.

    Podman's defaults ask for more open files and processes than an unprivileged service may grant; how many
    processes there may be is limited for the whole container, more strictly.
    """
    limits = [Ulimit(name="core", soft=0, hard=0)]
    if engine is PODMAN:
        limits += [Ulimit(name="nofile", soft=OPEN_FILES, hard=OPEN_FILES)]
        limits += [Ulimit(name="nproc", soft=PROCESSES, hard=PROCESSES)]
    return limits


def labels() -> dict[str, str]:
    """The labels of every container that this process makes: its machine and its process."""
    return {HOST_LABEL: _host(), PROCESS_LABEL: identity(os.getpid())}


def reap_orphans(engine: Engine = DOCKER) -> list[str]:
    """Removes the containers of runs on this machine whose process has died; returns their short ids.

    Raises SandboxError when the engine does not answer.
    """
    removed: list[str] = []
    with daemon_errors("orphaned containers cannot be removed"), contextlib.closing(connect(engine)) as client:
        mine: dict[str, Any] = {"label": f"{HOST_LABEL}={_host()}"}
        found: list[Any] = client.containers.list(all=True, filters=mine, ignore_removed=True)
        for container in found:
            if not is_running(container.labels.get(PROCESS_LABEL, "")):
                with contextlib.suppress(NotFound, APIError):  # Somebody else may be reaping, too.
                    container.remove(force=True, v=True)
                    removed.append(container.short_id)
    return removed


@functools.cache
def reap_once(process: int, engine: Engine) -> None:
    """Removes orphans the first time that a process opens a sandbox; an engine that fails at it fails again later."""
    del process
    with contextlib.suppress(SandboxError):
        reap_orphans(engine)


def _host() -> str:
    machine = Path("/etc/machine-id")
    return machine.read_text().strip() if machine.exists() else socket.gethostname()


def describe_error(error: Exception) -> str:
    """The gist of an engine's long message, in one line."""
    text = getattr(error, "explanation", None) or str(error)
    return " ".join(str(text).split())[:300]

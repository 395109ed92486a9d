"""The Docker daemon: connecting to it, clear words when it does not answer, and whose container is whose."""

from __future__ import annotations

import contextlib
import functools
import os
import secrets
import socket
from collections.abc import Generator
from pathlib import Path
from typing import Any

import docker
from docker.errors import APIError, DockerException, ImageNotFound, NotFound
from requests.exceptions import RequestException

from gumshoe.env.sandboxes.owners import identity, lives
from gumshoe.errors import SandboxError

__all__ = [
    "LABEL",
    "connect",
    "daemon_errors",
    "image_digest",
    "image_is_missing",
    "labels",
    "reap_once",
    "reap_orphans",
    "why_not_docker",
]

LABEL = "gumshoe.run"
HOST_LABEL = "gumshoe.host"
PROCESS_LABEL = "gumshoe.process"
TIMEOUT_S = 120
NO_IMAGE = "No such image"
RUN_ID = secrets.token_hex(8)


def connect() -> docker.DockerClient:
    """A connection to the daemon, for the caller to close. Raises SandboxError when no daemon answers."""
    where = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    try:
        return docker.from_env(timeout=TIMEOUT_S, version=_api_version(where))
    except DockerException as error:
        raise SandboxError(f"no Docker daemon answers at {where} ({_short(error)})") from None


@functools.cache
def _api_version(where: str) -> str:
    """The version of the API that the daemon and this SDK agree on; asked once for each daemon."""
    del where
    with contextlib.closing(docker.from_env(timeout=TIMEOUT_S)) as client:
        return str(client.api.api_version)


@contextlib.contextmanager
def daemon_errors(doing: str) -> Generator[None]:
    """Turns what the daemon says into one SandboxError."""
    try:
        yield
    except ImageNotFound as error:
        raise SandboxError(f"{doing}: {_short(error)}") from None
    except (DockerException, RequestException, OSError) as error:
        raise SandboxError(f"{doing}: {_short(error)}") from None


def why_not_docker(image: str) -> str | None:
    """Why Docker cannot run this image here; None where it can, which is found out once."""
    try:
        _find_image(image)
    except SandboxError as error:
        text = str(error)
        if NO_IMAGE in text:
            return f"the image {image} is not here (docker pull {image}, or make image for gumshoe-python)"
        return text
    return None


def image_is_missing(image: str) -> bool:
    """Whether the daemon answers and does not have the image."""
    try:
        _find_image(image)
    except SandboxError as error:
        return NO_IMAGE in str(error)
    return False


@functools.cache
def _find_image(image: str) -> None:
    with daemon_errors("the Docker daemon refuses"), contextlib.closing(connect()) as client:
        client.images.get(image)


def image_digest(image: str) -> str | None:
    """The image's id, a digest of its content. Raises SandboxError."""
    with daemon_errors(f"image {image}"), contextlib.closing(connect()) as client:
        return client.images.get(image).id


def labels() -> dict[str, str]:
    """The labels of every container that this process makes: its run, its machine, its process."""
    return {LABEL: RUN_ID, HOST_LABEL: _host(), PROCESS_LABEL: identity(os.getpid())}


def reap_orphans() -> list[str]:
    """Removes the containers of runs on this machine whose process has died; returns their short ids.

    Raises SandboxError when the daemon does not answer.
    """
    removed: list[str] = []
    with daemon_errors("orphaned containers cannot be removed"), contextlib.closing(connect()) as client:
        found: list[Any] = client.containers.list(all=True, filters={"label": f"{HOST_LABEL}={_host()}"})
        for container in found:
            if not lives(container.labels.get(PROCESS_LABEL, "")):
                with contextlib.suppress(NotFound, APIError):  # Somebody else may be reaping, too.
                    container.remove(force=True, v=True)
                    removed.append(container.short_id)
    return removed


@functools.cache
def reap_once(process: int) -> None:
    """Removes orphans the first time that a process opens a sandbox; a daemon that fails at it is left to complain
    later.
    """
    del process
    with contextlib.suppress(SandboxError):
        reap_orphans()


def _host() -> str:
    machine = Path("/etc/machine-id")
    return machine.read_text().strip() if machine.exists() else socket.gethostname()


def _short(error: Exception) -> str:
    """The heart of a long message, in one line."""
    text = getattr(error, "explanation", None) or str(error)
    return " ".join(str(text).split())[:300]

"""The container sandbox: one long-lived container whose process 1 is the warden, driven over the container's terminal.

Docker and Podman are the same here: Podman is reached over its Docker-compatible socket.

What it does: the container has no network, a few capabilities of the sort that package managers need, no way to gain
others, and limits on memory, processes and processors. Nothing of the host is mounted and nothing of its environment
passed on. Programs cannot kill the warden, nor open its terminal. For a task that comes as a folder and needs no setup
the container's disk is read-only; the repository, home and temporary folders are in memory, each with a limit on its
size. Otherwise the disk can be written and is watched: when its use exceeds the limit, everything in the sandbox is
killed. The daemon may be on another machine (`DOCKER_HOST`): everything goes over its one socket.

A filter refuses the system calls that tests have no use for (`host/seccomp.py`). The config names other runtimes, such
as gVisor's `runsc`, and user namespaces.

What it does not do: programs run as the image's user, often root inside the container, and with the default runtime on
the host's kernel. The disk is checked at intervals, so a fast program gets past its limit by what it writes in that
time.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import socket
import tarfile
import tempfile
import threading
import time
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

from docker.errors import APIError, ContainerError, ImageNotFound, NotFound
from docker.types import LogConfig, Ulimit
from pexpect.socket_pexpect import SocketSpawn
from pexpect.spawnbase import SpawnBase

from gumshoe.env.config import SandboxConfig
from gumshoe.env.sandboxes import engine
from gumshoe.env.sandboxes.backend import (
    HOME,
    PROGRAM_ENVIRONMENT,
    SHARED_MEMORY_MB,
    STATE,
    TEMPORARY,
    SandboxLayout,
    resource_limits,
)
from gumshoe.env.sandboxes.host.python_mounts import carried_packages
from gumshoe.env.sandboxes.host.seccomp import docker_profile
from gumshoe.env.virtualenvs import INSIDE, InstalledEnvironment, find_environment
from gumshoe.errors import TaskError
from gumshoe.records import Task

READ_BYTES = 1 << 16
CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "SETGID", "SETUID")
REMOVE_TRIES, REMOVE_PAUSE_S = 50, 0.1
ENDING = re.compile(r"container state improper|could not be stopped|removal of container .* is already in progress")


class DockerBackend:
    """One container. It exists from `connect` to `close`."""

    isolated = True

    def __init__(self, task: Task, config: SandboxConfig, container_engine: engine.Engine = engine.DOCKER) -> None:
        self.name = container_engine.name
        self._engine = container_engine
        self._config = config
        self._client: Any = None
        self._container: Any = None
        self._stream: Any = None
        self.image = task.workspace.image or config.image
        self._environment = task.workspace.environment
        self.image_digest: str | None = None
        workdir = task.workspace.workdir
        self._read_only = task.workspace.path is not None and not task.setup
        self._in_memory = [STATE, TEMPORARY]
        if task.workspace.path is not None:
            self._in_memory.append(workdir)
        if self._read_only:
            self._in_memory += [HOME, "/run", "/var/tmp"]  # noqa: S108 - inside the container
        self.layout = SandboxLayout(
            patch_limit=config.patch_mb << 20,
            root=workdir,
            state=f"{STATE}/state",
            python="python3",
            environment={**PROGRAM_ENVIRONMENT, **({"HOME": HOME} if self._read_only else {}), **config.env},
            limits=resource_limits(config.disk_mb),
            disk=None if self._read_only else config.disk_mb << 20,
        )

    def connect(self, argv: Sequence[str]) -> SpawnBase[bytes]:
        """Starts a container with this program as process 1, on a terminal that pexpect drives over the daemon's
        socket.
        """
        wanted = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
        with engine.daemon_errors(f"a container of {self.image} could not be started"):
            engine.reap_once(os.getpid(), self._engine)
            self._client = engine.connect(self._engine)
            if self._environment is not None:
                self.image = _environment_image(
                    self._client, self._environment, self.image, engine.ulimits(self._engine)
                )
            with self._profile() as profile:
                self._container = self._create(argv, profile)
            self.image_digest = self._container.attrs.get("Image")
            self._stream = self._client.api.attach_socket(self._container.id, params=wanted)
            self._container.start()
        raw = getattr(self._stream, "_sock", self._stream)
        return SocketSpawn(raw, timeout=None, maxread=READ_BYTES)  # pyright: ignore[reportArgumentType]

    def close(self) -> None:
        """Removes the container with all that is in it. Idempotent."""
        self._hang_up()
        container, self._container = self._container, None
        if container is not None:
            with contextlib.suppress(NotFound), engine.daemon_errors("the container could not be removed"):
                _remove(container)
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _create(self, argv: Sequence[str], profile: str) -> Any:
        config = self._config
        options = f"rw,exec,nosuid,nodev,mode=1777,size={config.disk_mb}m"
        if self._engine is engine.PODMAN:  # It would fill the folders from the image.
            options += ",notmpcopyup"
        memory = f"{config.memory_mb}m"
        return self._client.containers.create(
            self.image,
            list(argv),
            entrypoint=[],
            tty=True,
            stdin_open=True,
            labels=engine.labels(),
            network_mode="none",
            hostname="gumshoe",
            cap_drop=["ALL"],
            cap_add=list(CAPABILITIES),
            security_opt=["no-new-privileges", f"seccomp={profile}"],
            runtime=config.runtime,
            userns_mode=config.userns,
            mem_limit=memory,
            memswap_limit=memory,
            pids_limit=config.pids,
            nano_cpus=int(config.cpus * 1e9),
            shm_size=f"{SHARED_MEMORY_MB}m",
            read_only=self._read_only,
            tmpfs=dict.fromkeys(self._in_memory, options),
            ulimits=engine.ulimits(self._engine),
            log_config=LogConfig(type="none"),
            working_dir="/",
        )

    @contextlib.contextmanager
    def _profile(self) -> Generator[str]:
        """The filter of system calls as the engine takes it: Docker as JSON, Podman as a file on its machine."""
        if self._engine is not engine.PODMAN:
            yield docker_profile()
            return
        with tempfile.NamedTemporaryFile("w", prefix="gumshoe-", suffix=".json") as file:
            file.write(docker_profile())
            file.flush()
            os.fchmod(file.fileno(), 0o644)  # The service may be another user's.
            yield file.name

    def _hang_up(self) -> None:
        """Closes the terminal's connection, and the response that holds it."""
        stream, self._stream = self._stream, None
        if stream is None:
            return
        raw = getattr(stream, "_sock", stream)
        response = getattr(stream, "_response", None)
        with contextlib.suppress(OSError):
            raw.shutdown(socket.SHUT_RDWR)
        if response is not None:
            response.close()
        stream.close()
        raw.close()


def _remove(container: Any) -> None:
    """Removes a container. Podman refuses while one is about to end by itself, so it is tried again."""
    for _ in range(REMOVE_TRIES):
        try:
            return container.remove(force=True, v=True)
        except APIError as error:
            if not ENDING.search(str(error)):
                raise
            time.sleep(REMOVE_PAUSE_S)
    return container.remove(force=True, v=True)


REPOSITORY = "gumshoe-environment"
ASK = "import os, sys; print('%d.%d' % sys.version_info[:2], os.path.realpath(sys.executable))"
# What a virtual environment says about its interpreter; the image has its own.
RELINKED = ("bin/python", "bin/python3", "pyvenv.cfg")

_lock = threading.Lock()


def _environment_image(client: Any, name: str, base: str, ulimits: list[Ulimit]) -> str:
    """The image that is `base` with this environment at /environment, made if it does not exist yet.

    The layer holds the same folder that bubblewrap mounts, linked to the interpreter of `base`. Raises TaskError where
    the environment is not on this machine, or the image's Python is of another version.
    """
    tag = f"{name}-{client.images.get(base).id.partition(':')[2][:12]}"
    image = f"{REPOSITORY}:{tag}"
    with _lock:
        try:
            client.images.get(image)
        except ImageNotFound:
            _make(client, find_environment(name), base, tag, ulimits)
    return image


def _make(client: Any, environment: InstalledEnvironment, base: str, tag: str, ulimits: list[Ulimit]) -> None:
    try:
        output = client.containers.run(
            base,
            ["python3", "-c", ASK],
            entrypoint=[],
            network_mode="none",
            ulimits=ulimits,
            labels=engine.labels(),
            remove=True,
        )
    except ContainerError as error:
        raise TaskError(f"image {base} has no python3: {str(error.stderr)[:200]}") from None
    version, python = output.decode("utf-8", "replace").split()
    wanted = "{}.{}".format(*environment.version)
    if version != wanted:
        raise TaskError(f"environment {environment.name} needs Python {wanted}; image {base} has {version}")
    container = client.containers.create(base, ["true"], entrypoint=[], network_mode="none", labels=engine.labels())
    try:
        container.put_archive("/", _archive(environment, python, version))
        # An image has the labels of its container, and containers have those of their image: without this, what others
        # start from the image would be taken for an orphan of this process and removed.
        container.commit(repository=REPOSITORY, tag=tag, changes=[f'LABEL {name}=""' for name in engine.labels()])
    finally:
        container.remove(force=True, v=True)


def _archive(environment: InstalledEnvironment, python: str, version: str) -> io.BytesIO:
    """The folder as a tar archive, with the links to its interpreter redone."""
    buffer = io.BytesIO()
    prefix = INSIDE.lstrip("/")
    relinked = {*RELINKED, f"bin/python{version}"}
    carried = {str(Path(path).relative_to(environment.root)) for path in carried_packages(environment.root)}

    def entry(info: tarfile.TarInfo) -> tarfile.TarInfo | None:
        info.uid = info.gid = 0
        info.uname = info.gname = ""
        return None if info.name.removeprefix(f"{prefix}/") in {*relinked, *carried} else info

    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        archive.add(environment.root, arcname=prefix, filter=entry)
        settings = f"home = {Path(python).parent}\ninclude-system-site-packages = false\n".encode()
        info = tarfile.TarInfo(f"{prefix}/pyvenv.cfg")
        info.size = len(settings)
        archive.addfile(info, io.BytesIO(settings))
        for name in ("python", "python3", f"python{version}"):
            link = tarfile.TarInfo(f"{prefix}/bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, python
            archive.addfile(link)
    buffer.seek(0)
    return buffer

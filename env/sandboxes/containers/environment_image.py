"""The image layer that holds an environment: the same folder that bubblewrap mounts, on the interpreter of an image."""

from __future__ import annotations

import io
import tarfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from docker.errors import ContainerError, ImageNotFound
from docker.types import Ulimit

from gumshoe.env.environments import INSIDE, InstalledEnvironment, find_environment
from gumshoe.env.sandboxes.host.python_mounts import carried_packages
from gumshoe.errors import TaskError

__all__ = ["REPOSITORY", "environment_image"]

REPOSITORY = "gumshoe-environment"
ASK = "import os, sys; print('%d.%d' % sys.version_info[:2], os.path.realpath(sys.executable))"
# What a virtual environment says about its interpreter; the image has its own.
RELINKED = ("bin/python", "bin/python3", "pyvenv.cfg")

_lock = threading.Lock()


def environment_image(client: Any, name: str, base: str, ulimits: Sequence[Ulimit] = ()) -> str:
    """The image that is `base` with this environment at /environment, made if it does not exist yet.

    Args:
        ulimits: for the processes that look at `base`.

    Raises:
        TaskError: the environment is not on this machine, or the image's Python is of another version.
        DockerException: the daemon refuses.
    """
    tag = f"{name}-{client.images.get(base).id.partition(':')[2][:12]}"
    image = f"{REPOSITORY}:{tag}"
    with _lock:
        try:
            client.images.get(image)
        except ImageNotFound:
            _make(client, find_environment(name), base, tag, list(ulimits))
    return image


def _make(client: Any, environment: InstalledEnvironment, base: str, tag: str, ulimits: list[Ulimit]) -> None:
    try:
        output = client.containers.run(
            base, ["python3", "-c", ASK], entrypoint=[], network_mode="none", ulimits=ulimits, remove=True
        )
    except ContainerError as error:
        raise TaskError(f"image {base} has no python3: {str(error.stderr)[:200]}") from None
    version, python = output.decode("utf-8", "replace").split()
    wanted = "{}.{}".format(*environment.version)
    if version != wanted:
        raise TaskError(f"environment {environment.name} needs Python {wanted}; image {base} has {version}")
    container = client.containers.create(base, ["true"], entrypoint=[], network_mode="none")
    try:
        container.put_archive("/", _archive(environment, python, version))
        container.commit(repository=REPOSITORY, tag=tag)
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

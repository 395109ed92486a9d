"""A real image registry on this machine's loopback, and tiny images in it."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
import time
import uuid
from collections.abc import Generator
from pathlib import Path
from typing import Any

from gumshoe.env.sandboxes.engine import DOCKER, connect
from support.sandboxes.testbed_images import tar_of


@contextlib.contextmanager
def running_registry(folder: Path, *, password: bool = False) -> Generator[str]:
    """Its address; only for tests that need "registry". With a password, which nobody knows, it refuses everybody."""
    program = shutil.which("docker-registry")
    assert program is not None
    config: dict[str, Any] = {
        "version": "0.1",
        "log": {"level": "info"},
        "storage": {"filesystem": {"rootdirectory": str(folder / "data")}},
        "http": {"addr": "127.0.0.1:0"},
    }
    if password:
        config["auth"] = {"htpasswd": {"realm": "test", "path": str(folder / "htpasswd")}}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.yml").write_text(json.dumps(config))  # JSON is YAML.
    with (folder / "log").open("w") as log:
        process = subprocess.Popen([program, "serve", str(folder / "config.yml")], stdout=log, stderr=log)
        try:
            yield _wait_for_address(process, folder / "log")
        finally:
            process.kill()
            process.wait()


def _wait_for_address(process: subprocess.Popen[bytes], log: Path) -> str:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        if found := re.search(r"listening on (127\.0\.0\.1:\d+)", log.read_text()):
            return found[1]
        time.sleep(0.05)
    raise AssertionError(f"the registry did not start: {log.read_text()}")


def unique_name() -> str:
    return f"gumshoe-test/{uuid.uuid4().hex[:12]}:1"


def push_image(image: str) -> None:
    """Puts a new image of one layer into the registry that its name begins with, and nowhere else."""
    repository, _, tag = image.rpartition(":")
    with contextlib.closing(connect(DOCKER)) as client:
        client.api.import_image_from_data(tar_of({"content": b"x"}).getvalue(), repository=repository, tag=tag)
        told = list(client.api.push(repository, tag=tag, stream=True, decode=True))
        assert not [line for line in told if "error" in line], told
        client.images.remove(f"{repository}:{tag}")

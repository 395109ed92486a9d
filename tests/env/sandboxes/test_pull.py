"""Images are pulled from a registry, once, within a budget; what cannot be pulled is reported in one line."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from gumshoe.env import SandboxConfig, open_sandbox
from gumshoe.env.sandboxes.containers.engine import DOCKER, PODMAN, connect, image_digest, image_is_missing
from gumshoe.env.sandboxes.containers.pull import compressed_size, provide_image
from gumshoe.env.sandboxes.containers.pulled_images import RECENT_S, image_id, pulled_images
from gumshoe.env.sandboxes.open import choose
from gumshoe.errors import SandboxError, TaskError
from gumshoe.records import Task, WorkspaceSpec
from support.sandboxes.image_registry import (
    LAYER_BYTES,
    push_image,
    running_registry,
    unique_name,
)

BASE = "gumshoe-python:latest"
GB = 1e9


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    with running_registry(tmp_path_factory.mktemp("registry")) as host:
        yield host


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GUMSHOE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def images(registry: str) -> Generator[list[str]]:
    """Three images that are in the registry; what a test pulled of them is removed after it."""
    names = [unique_name() for _ in range(3)]
    for name in names:
        push_image(registry, name)
    yield names
    with contextlib.closing(connect(DOCKER)) as client:
        for name in (*names, *(f"{registry}/{name}" for name in names)):
            if image_id(client, name) is not None:
                client.images.remove(name, force=True)


def mirrored(registry: str, **options: Any) -> SandboxConfig:
    return SandboxConfig(kind="docker", mirror=registry, **options)


def here(*names: str) -> list[bool]:
    from gumshoe.env.sandboxes.containers.engine import forget_found_images

    forget_found_images()
    return [not image_is_missing(name) for name in names]


def make_older(cache: Path, seconds: float) -> None:
    """As if all images had last been used that long ago."""
    path = cache / "images.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps({**row, "used": row["used"] - seconds}) + "\n" for row in rows))


@pytest.mark.needs("docker")
def test_an_image_comes_from_the_mirror_and_keeps_its_name(
    registry: str, images: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    name = images[0]
    provide_image(name, DOCKER, mirrored(registry))
    assert here(name, f"{registry}/{name}") == [True, True]
    lines = capfd.readouterr().err.splitlines()
    assert lines[0] == f"pulling {name}"
    assert re.fullmatch(rf"pulled {name}: 0\.3 of 0\.3 MB, \d+ s", lines[-1])
    (entry,) = pulled_images(DOCKER.address)
    assert (entry.names, entry.id) == ((name, f"{registry}/{name}"), image_digest(name))
    assert entry.size >= LAYER_BYTES
    assert time.time() - entry.used < 60


@pytest.mark.needs("docker")
def test_a_task_has_its_image_pulled_when_its_sandbox_is_opened(registry: str, images: list[str]) -> None:
    spec = WorkspaceSpec(image=images[0], workdir="/")
    task = Task(id="t", source="test", problem_statement="", workspace=spec, entrypoint=("true",))
    choose(task, mirrored(registry), trusted=True)
    assert here(images[0]) == [False]
    with pytest.raises(SandboxError, match="python3"):  # It holds one file and no Python: its container cannot start.
        open_sandbox(task, mirrored(registry), trusted=True)
    assert here(images[0]) == [True]


@pytest.mark.needs("docker")
def test_threads_that_want_the_same_image_pull_it_once(
    registry: str, images: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    with ThreadPoolExecutor(6) as threads:
        list(threads.map(lambda name: provide_image(name, DOCKER, mirrored(registry)), [*images, *images]))
    assert here(*images) == [True] * 3
    lines = capfd.readouterr().err.splitlines()
    assert [lines.count(f"pulling {name}") for name in images] == [1, 1, 1]
    assert {entry.names[0] for entry in pulled_images(DOCKER.address)} == set(images)


@pytest.mark.needs("docker")
def test_always_takes_what_the_registry_has_now_once_per_process(registry: str, images: list[str]) -> None:
    name = images[0]
    provide_image(name, DOCKER, mirrored(registry))
    old = image_digest(name) or ""
    push_image(registry, name)
    provide_image(name, DOCKER, mirrored(registry))
    assert image_digest(name) == old
    newest = SandboxConfig(kind="docker", mirror=registry, pull="always")
    code = (
        "import sys\n"
        "from gumshoe.env import SandboxConfig\n"
        "from gumshoe.env.sandboxes.containers.engine import DOCKER\n"
        "from gumshoe.env.sandboxes.containers.pull import provide_image\n"
        "for _ in range(2): provide_image(sys.argv[1], DOCKER, SandboxConfig.model_validate_json(sys.argv[2]))"
    )
    argv = [sys.executable, "-c", code, name, newest.model_dump_json()]
    done = subprocess.run(argv, env=dict(os.environ), capture_output=True, text=True, check=True)
    assert done.stderr.splitlines().count(f"pulling {name}") == 1
    (entry,) = pulled_images(DOCKER.address)
    assert old != entry.id == image_digest(name)
    with contextlib.closing(connect(DOCKER)) as client:
        assert image_id(client, old) is None  # It had no name any more.


@pytest.mark.needs("docker")
def test_what_is_not_there_or_not_given_is_told_in_one_line(
    registry: str, tmp_path: Path, closed_port: Callable[[], int]
) -> None:
    name = unique_name()
    for _ in range(2):  # The second time without asking.
        with pytest.raises(
            TaskError, match=rf"^image {name} \(as {registry}/{name}\) cannot be pulled: the registry has"
        ):
            provide_image(name, DOCKER, mirrored(registry))
    nobody = f"127.0.0.1:{closed_port()}"
    with pytest.raises(SandboxError, match=r"the registry cannot be reached \(.*connection refused\)$"):
        provide_image(name, DOCKER, mirrored(nobody))
    with (
        running_registry(tmp_path / "closed", password=True) as closed,
        pytest.raises(SandboxError, match=r"the registry refuses access \(.*no basic auth credentials\)$"),
    ):
        provide_image(name, DOCKER, mirrored(closed))
    spec = WorkspaceSpec(image=name, workdir="/testbed")
    task = Task(id="t", source="test", problem_statement="", workspace=spec, entrypoint=("true",))
    with pytest.raises(TaskError, match=f"^task t: image {name} .* the registry has no such image"):
        open_sandbox(task, mirrored(registry), trusted=True)
    with pytest.raises(TaskError, match=f"^task t: its image {name} is not here: docker pull {name}$"):
        open_sandbox(task, mirrored(registry, pull="never"), trusted=True)
    folder = task.model_copy(update={"workspace": WorkspaceSpec(path=str(tmp_path))})
    with pytest.raises(SandboxError, match=f"^sandbox docker: image {name} .* the registry has no such image"):
        open_sandbox(folder, mirrored(registry, image=name), trusted=True)


@pytest.mark.needs("docker")
def test_the_budget_removes_the_least_recently_used_and_never_what_the_user_brought(
    registry: str, images: list[str], cache: Path
) -> None:
    first, second, third = images
    config = mirrored(registry, images_gb=2.5 * LAYER_BYTES / GB)
    provide_image(first, DOCKER, config)
    with contextlib.closing(connect(DOCKER)) as client:
        users = [unique_name() for _ in range(2)]
        for each in users:  # Another name of the image, and an image of the same size.
            client.api.tag(first, each.removesuffix(":1"), "1")
        push_image(registry, users[1])
        client.api.pull(f"{registry}/{users[1]}")
        client.api.tag(f"{registry}/{users[1]}", users[1].removesuffix(":1"), "1")
        try:
            make_older(cache, 2 * RECENT_S)
            provide_image(second, DOCKER, config)
            assert here(first, second, *users) == [True] * 4
            make_older(cache, 2 * RECENT_S)
            provide_image(third, DOCKER, config)
            assert here(first, second, third, *users) == [False, True, True, True, True]
            assert here(f"{registry}/{first}", f"{registry}/{second}") == [False, True]
            assert {entry.names[0] for entry in pulled_images(DOCKER.address)} == {second, third}
        finally:
            for each in (*users, f"{registry}/{users[1]}"):
                client.images.remove(each)


@pytest.mark.needs("docker")
def test_the_budget_spares_what_is_in_use_or_no_longer_ours(
    registry: str, images: list[str], cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first, second, third = images
    config = mirrored(registry, images_gb=1.5 * LAYER_BYTES / GB)
    provide_image(first, DOCKER, config)
    with contextlib.closing(connect(DOCKER)) as client:
        container = client.containers.create(first, ["true"])
        try:
            make_older(cache, 2 * RECENT_S)
            provide_image(second, DOCKER, config)  # Over the budget: the first has a container.
            assert here(first, second) == [True, True]
            assert "more than sandbox.images_gb" in caplog.text
        finally:
            container.remove()
        provide_image(third, DOCKER, config)  # The second was used a moment ago.
        assert here(first, second, third) == [False, True, True]
        client.api.tag(BASE, second.removesuffix(":1"), "1")  # The user's from now on.
        make_older(cache, 2 * RECENT_S)
        push_image(registry, first)
        provide_image(first, DOCKER, config)
        assert here(first, second, third) == [True, True, False]
        assert here(BASE) == [True]


@pytest.mark.needs("docker")
def test_the_size_is_known_before_the_pull(registry: str, images: list[str], closed_port: Callable[[], int]) -> None:
    assert LAYER_BYTES <= compressed_size(f"{registry}/{images[0]}") < 1.1 * LAYER_BYTES
    assert compressed_size(f"{registry}/{unique_name()}") == 0
    assert compressed_size(f"127.0.0.1:{closed_port()}/{images[0]}") == 0
    assert compressed_size("no name") == 0


@pytest.fixture
def podman(registry: str, monkeypatch: pytest.MonkeyPatch) -> Generator[str]:
    """The address of a service of its own: Podman asks a registry without TLS only where its configuration says so."""
    with tempfile.TemporaryDirectory(prefix="gs-", ignore_cleanup_errors=True) as name:  # Podman takes no longer names.
        folder = Path(name)
        settings = folder / "registries.conf"
        settings.write_text(f'[[registry]]\nlocation = "{registry}"\ninsecure = true\n')
        where = f"unix://{folder}/podman.sock"
        storage = ["--root", f"{folder}/root", "--runroot", f"{folder}/run", "--storage-driver", "vfs"]
        service = subprocess.Popen(
            ["podman", *storage, "system", "service", "--time", "0", where],
            env={**os.environ, "CONTAINERS_REGISTRIES_CONF": str(settings)},
            stderr=subprocess.DEVNULL,
        )
        try:
            deadline = time.monotonic() + 120
            while not (folder / "podman.sock").exists() and time.monotonic() < deadline:
                time.sleep(0.05)
            monkeypatch.setenv("CONTAINER_HOST", where)
            yield where
        finally:
            service.terminate()
            service.wait()


@pytest.mark.needs("podman")
def test_podman_pulls_too(
    registry: str,
    images: list[str],
    podman: str,
    cache: Path,
    capfd: pytest.CaptureFixture[str],
    closed_port: Callable[[], int],
) -> None:
    config = SandboxConfig(kind="podman", mirror=registry)
    provide_image(images[0], PODMAN, config)
    assert not image_is_missing(images[0], PODMAN)
    assert capfd.readouterr().err.startswith(f"pulling {images[0]}\npulled {images[0]}: ")
    assert [entry.names[0] for entry in pulled_images(podman)] == [images[0]]
    with pytest.raises(TaskError, match="the registry has no such image"):
        provide_image(unique_name(), PODMAN, config)
    with pytest.raises(SandboxError, match="the registry cannot be reached"):
        provide_image(images[1], PODMAN, config.model_copy(update={"mirror": f"127.0.0.1:{closed_port()}"}))
    make_older(cache, 2 * RECENT_S)
    provide_image(images[1], PODMAN, config.model_copy(update={"images_gb": 1.5 * LAYER_BYTES / GB}))
    assert [entry.names[0] for entry in pulled_images(podman)] == [images[1]]

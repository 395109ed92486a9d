"""Images of containers: pulling them, their digests, and environments as layers."""

import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import pytest
from docker.errors import DockerException, ImageNotFound

from gumshoe.env import SandboxConfig, open_sandbox
from gumshoe.env.debug_env import DebugEnv
from gumshoe.env.sandboxes.docker import REPOSITORY
from gumshoe.env.sandboxes.engine import (
    DOCKER,
    ENGINES,
    PODMAN,
    connect,
    image_digest,
    image_is_missing,
    pull_if_missing,
)
from gumshoe.env.sandboxes.open import choose
from gumshoe.env.virtualenvs import environment_folder
from gumshoe.errors import SandboxError, TaskError
from gumshoe.protocols import SandboxKind
from gumshoe.records import Task, WorkspaceSpec
from support.folder_tasks import folder_task
from support.pythons import make_environment
from support.sandboxes.image_registry import push_image, running_registry, unique_name
from support.sandboxes.sandbox_backends import CONTAINERS, ISOLATED

# --- images are pulled from a registry, once; what cannot be pulled is reported in one line


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    with running_registry(tmp_path_factory.mktemp("registry")) as host:
        yield host


@pytest.fixture
def images(registry: str) -> Generator[list[str]]:
    """Two images that are in the registry; what a test pulled of them is removed after it."""
    names = [f"{registry}/{unique_name()}" for _ in range(2)]
    for name in names:
        push_image(name)
    yield names
    with closing(connect(DOCKER)) as client:
        for name in names:
            with suppress(ImageNotFound):
                client.images.remove(name, force=True)


def task_in(image: str) -> Task:
    return folder_task(Path(), id="t", workspace=WorkspaceSpec(image=image, workdir="/"))


@pytest.mark.needs("docker", "registry")
def test_a_task_has_its_image_pulled_when_its_sandbox_is_opened(images: list[str]) -> None:
    task, config = task_in(images[0]), SandboxConfig(kind="docker")
    choose(task, config, trusted=True)
    assert image_is_missing(images[0])
    with pytest.raises(SandboxError, match="python3"):  # It holds one file and no Python: its container cannot start.
        open_sandbox(task, config, trusted=True)
    assert not image_is_missing(images[0])


@pytest.mark.needs("docker", "registry")
def test_threads_that_want_the_same_image_pull_it_once(images: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda name: pull_if_missing(name, DOCKER), [images[1]] * 4))
    assert not image_is_missing(images[1])
    assert capfd.readouterr().err == f"pulling {images[1]}\n"


@pytest.mark.needs("docker", "registry")
def test_what_is_not_there_or_not_given_is_told_in_one_line(
    registry: str, tmp_path: Path, closed_port: Callable[[], int]
) -> None:
    name, config = unique_name(), SandboxConfig(kind="docker")
    missing = f"{registry}/{name}"
    with pytest.raises(TaskError, match=f"^task t: the image {missing} cannot be pulled: .*manifest unknown"):
        open_sandbox(task_in(missing), config, trusted=True)
    with pytest.raises(SandboxError, match=f"^sandbox docker: the image {missing} cannot be pulled: "):
        open_sandbox(folder_task(tmp_path), config.model_copy(update={"image": missing}), trusted=True)
    with pytest.raises(SandboxError, match="connection refused"):
        pull_if_missing(f"127.0.0.1:{closed_port()}/{name}", DOCKER)
    with (
        running_registry(tmp_path / "closed", password=True) as closed,
        pytest.raises(SandboxError, match="no basic auth credentials"),
    ):
        pull_if_missing(f"{closed}/{name}", DOCKER)
    with pytest.raises(TaskError, match=f"^task t: its image {missing} is not here: docker pull {missing}$"):
        open_sandbox(task_in(missing), config.model_copy(update={"pull": "never"}), trusted=True)


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


@pytest.mark.needs("podman", "registry")
def test_podman_pulls_too(registry: str, images: list[str], podman: str) -> None:
    pull_if_missing(images[0], PODMAN)
    assert not image_is_missing(images[0], PODMAN)
    with pytest.raises(TaskError, match="cannot be pulled"):
        pull_if_missing(f"{registry}/{unique_name()}", PODMAN)


@pytest.mark.parametrize("kind", [CONTAINERS[0], "local"])
def test_a_container_has_the_digest_of_its_image_and_others_have_none(kind: SandboxKind, tmp_path: Path) -> None:
    config = SandboxConfig(kind=kind, unsafe=True)
    with closing(DebugEnv(folder_task(tmp_path), tools=("eval",), sandbox=config, trusted=True)) as env:
        env.reset()
        digest = env.describe().image_digest
    assert digest == (None if kind == "local" else image_digest(config.image))


# --- the environment of a harvested package: mounted, or as a layer of an image


@pytest.fixture(scope="module")
def environment() -> Generator[str]:
    """The name of an environment with a module of its own."""
    name = secrets.token_hex(8)
    make_environment(Path(sys.executable), name, COLOR="blue")
    (packages,) = environment_folder(name).glob("root/lib/python3*/site-packages")
    (packages / "greeting.py").write_text("WORD = 'hello'\n")
    yield name
    for engine in ENGINES.values():
        with suppress(SandboxError), closing(connect(engine)) as client:
            for image in client.images.list(name=REPOSITORY):
                if any(f":{name}-" in tag for tag in image.tags):
                    with suppress(DockerException):
                        client.images.remove(str(image.id), force=True)


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the base image has Python 3.11")
@pytest.mark.parametrize("backend", ISOLATED)
def test_programs_run_in_the_environment_and_cannot_write_to_it(
    backend: SandboxKind, environment: str, tmp_path: Path
) -> None:
    task = folder_task(tmp_path, workspace=WorkspaceSpec(path=str(tmp_path), environment=environment))
    with open_sandbox(task, SandboxConfig(kind=backend), trusted=False) as sandbox:
        code = "import greeting, os, sys; print(greeting.WORD, os.environ['COLOR'], sys.prefix)"
        assert sandbox.run(["python", "-c", code]).output == "hello blue /environment\n"
        assert "Read-only file system" in sandbox.run(["python", "-c", "open('/environment/new', 'w')"]).output
    if backend in ENGINES:
        with closing(connect(ENGINES[backend])) as client:
            images = client.images.list(name=REPOSITORY)
        made = [image for image in images if f":{environment}-" in " ".join(image.tags)]
        assert [set(image.labels.values()) for image in made] == [{""}]

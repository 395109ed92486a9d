"""Images of containers: pulling them, their digests, and environments as layers."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from docker.errors import DockerException, ImageNotFound

from gumshoe.cli import main
from gumshoe.env import SandboxConfig, open_sandbox
from gumshoe.env.debug_env import DebugEnv
from gumshoe.env.sandboxes.docker import REPOSITORY
from gumshoe.env.sandboxes.engine import (
    DOCKER,
    ENGINES,
    PODMAN,
    connect,
    forget_found_images,
    image_digest,
    image_is_missing,
    pull_if_missing,
)
from gumshoe.env.sandboxes.open import choose
from gumshoe.env.virtualenvs import RECORD
from gumshoe.errors import SandboxError, TaskError
from gumshoe.records import Task, WorkspaceSpec
from support.sandboxes.image_registry import push_image, running_registry, unique_name
from support.sandboxes.sandbox_backends import ISOLATED

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
    spec = WorkspaceSpec(image=image, workdir="/")
    return Task(id="t", source="test", problem_statement="", workspace=spec, entrypoint=("true",))


@pytest.mark.needs("docker", "registry")
def test_a_task_has_its_image_pulled_when_its_sandbox_is_opened(images: list[str]) -> None:
    task, config = task_in(images[0]), SandboxConfig(kind="docker")
    choose(task, config, trusted=True)
    assert image_is_missing(images[0])
    with pytest.raises(SandboxError, match="python3"):  # It holds one file and no Python: its container cannot start.
        open_sandbox(task, config, trusted=True)
    assert not image_is_missing(images[0])


class FakeDaemon(BaseHTTPRequestHandler):
    """Docker's API as far as a pull needs it: `a:1` can be pulled, `gone:1` is unknown, `full:1` finds a full disk."""

    protocol_version = "HTTP/1.1"
    pulls: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        name = unquote(self.path).partition("/images/")[2].removesuffix("/json")
        if self.path.endswith("/version"):
            self._answer(200, {"ApiVersion": "1.44", "MinAPIVersion": "1.24"})
        elif name in self.pulls and name == "a:1":
            self._answer(200, {"Id": "sha256:0"})
        else:
            self._answer(404, {"message": f"No such image: {name}"})

    def do_POST(self) -> None:
        query = parse_qs(urlsplit(self.path).query)
        name = f"{query['fromImage'][0]}:{query['tag'][0]}"
        self.pulls.append(name)
        time.sleep(0.05)
        errors = {"gone:1": "manifest unknown: manifest unknown", "full:1": "no space left on device"}
        self._answer(200, {"status": "Pulling"}, *([{"error": errors[name]}] if name in errors else []))

    def _answer(self, status: int, *lines: dict[str, str]) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for data in [*(json.dumps(line).encode() + b"\r\n" for line in lines), b""]:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))

    def log_message(self, format: str, *args: object) -> None:
        del format, args


def test_threads_that_want_the_same_image_pull_it_once_and_what_the_engine_says_is_told(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), FakeDaemon) as server:
        threading.Thread(target=server.serve_forever).start()
        monkeypatch.setenv("DOCKER_HOST", f"tcp://127.0.0.1:{server.server_port}")
        try:
            with ThreadPoolExecutor(4) as threads:
                list(threads.map(lambda name: pull_if_missing(name, DOCKER), ["a:1"] * 4))
            assert FakeDaemon.pulls == ["a:1"]
            assert capfd.readouterr().err == "pulling a:1\n"
            with pytest.raises(TaskError, match=r"^the image gone:1 cannot be pulled: manifest unknown"):
                pull_if_missing("gone:1", DOCKER)
            with pytest.raises(SandboxError, match=r"^the image full:1 cannot be pulled: no space left on device$"):
                pull_if_missing("full:1", DOCKER)
        finally:
            server.shutdown()
            forget_found_images()


@pytest.mark.needs("docker", "registry")
def test_what_is_not_there_or_not_given_is_told_in_one_line(
    registry: str, tmp_path: Path, closed_port: Callable[[], int]
) -> None:
    name, config = unique_name(), SandboxConfig(kind="docker")
    missing = f"{registry}/{name}"
    with pytest.raises(TaskError, match=f"^task t: the image {missing} cannot be pulled: .*manifest unknown"):
        open_sandbox(task_in(missing), config, trusted=True)
    with pytest.raises(SandboxError, match=f"^sandbox docker: the image {missing} cannot be pulled: "):
        open_sandbox(a_task(tmp_path), config.model_copy(update={"image": missing}), trusted=True)
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
def test_podman_pulls_too(registry: str, images: list[str], podman: str, closed_port: Callable[[], int]) -> None:
    pull_if_missing(images[0], PODMAN)
    assert not image_is_missing(images[0], PODMAN)
    with pytest.raises(TaskError, match="cannot be pulled"):
        pull_if_missing(f"{registry}/{unique_name()}", PODMAN)
    with pytest.raises(SandboxError, match="cannot be pulled"):
        pull_if_missing(f"127.0.0.1:{closed_port()}/{unique_name()}", PODMAN)


@pytest.mark.parametrize(
    ("setting", "said"),
    [("memory_mb=many", "memory_mb"), ("pool=2", "pool"), ("pull=often", "pull")],
)
def test_the_check_takes_settings_of_the_sandbox(setting: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tasks", "check", "casebook", "-p", setting]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "the sandbox of -p" in line
    assert said in line


# --- a trajectory says which image its container was made from


def a_task(folder: Path) -> Task:
    spec = WorkspaceSpec(path=str(folder))
    return Task(id="t", source="test", problem_statement="", workspace=spec, entrypoint=("true",))


@pytest.mark.needs("docker")
def test_a_container_has_the_digest_of_its_image(tmp_path: Path) -> None:
    config = SandboxConfig(kind="docker")
    with closing(DebugEnv(a_task(tmp_path), tools=("eval",), sandbox=config, trusted=True)) as env:
        env.reset()
        digest = env.describe().image_digest
    assert digest is not None
    assert digest.startswith("sha256:")
    assert digest == image_digest(config.image)


def test_a_sandbox_without_an_image_has_none(tmp_path: Path) -> None:
    config = SandboxConfig(kind="local", unsafe=True)
    with closing(DebugEnv(a_task(tmp_path), tools=("eval",), sandbox=config, trusted=True)) as env:
        env.reset()
        assert env.describe().image_digest is None


# --- the environment of a harvested package: mounted, or as a layer of an image

PROGRAM = """\
import sys
from gumshoe.env import SandboxConfig, open_sandbox
from gumshoe.records import Task, WorkspaceSpec
spec = WorkspaceSpec(path=sys.argv[2], environment=sys.argv[3])
task = Task(id="e", source="t", problem_statement="", workspace=spec, entrypoint=("python", "-c", "pass"))
with open_sandbox(task, SandboxConfig(kind=sys.argv[1]), trusted=False) as sandbox:
    code = "import greeting, os, sys; print(greeting.WORD, os.environ['COLOR'], sys.prefix)"
    print(sandbox.run(["python", "-c", code]).output.strip())
    print(sandbox.run(["python", "-c", "open('/environment/new', 'w')"]).output.strip().splitlines()[-1])
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[str, Path]]:
    """The name of an environment with a module of its own, and the cache that it is in."""
    cache, name = tmp_path_factory.mktemp("cache"), secrets.token_hex(8)
    folder = cache / "environments" / name
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "root")], check=True)
    next(folder.glob("root/lib/python3*/site-packages")).joinpath("greeting.py").write_text("WORD = 'hello'\n")
    record = {"version": sys.version_info[:2], "python": sys.executable, "lock": {"variables": {"COLOR": "blue"}}}
    (folder / RECORD).write_text(json.dumps(record))
    yield name, cache
    for engine in ENGINES.values():
        with suppress(SandboxError), closing(connect(engine)) as client:
            for image in client.images.list(name=REPOSITORY):
                if any(f":{name}-" in tag for tag in image.tags):
                    with suppress(DockerException):
                        client.images.remove(str(image.id), force=True)


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the base image has Python 3.11")
@pytest.mark.parametrize("backend", ISOLATED)
def test_programs_run_in_the_environment_and_cannot_write_to_it(
    backend: str, environment: tuple[str, Path], tmp_path: Path
) -> None:
    name, cache = environment
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, backend, str(tmp_path), name],
        env={"PATH": "/usr/bin:/bin", "GUMSHOE_CACHE": str(cache)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    seen, refused = done.stdout.splitlines()
    assert seen == "hello blue /environment"
    assert "Read-only file system" in refused
    if backend in ENGINES:
        with closing(connect(ENGINES[backend])) as client:
            made = [image for image in client.images.list(name=REPOSITORY) if f":{name}-" in " ".join(image.tags)]
        assert [set(image.labels.values()) for image in made] == [{""}]

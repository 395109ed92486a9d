"""Images of containers: their names, sizes and digests, what is said of registries, and environments as layers."""

from __future__ import annotations

import json
import platform
import secrets
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import closing, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from docker.errors import DockerException
from pydantic import ValidationError

from gumshoe.cli import main
from gumshoe.env import SandboxConfig
from gumshoe.env.debug_env import DebugEnv
from gumshoe.env.environments import RECORD
from gumshoe.env.sandboxes.containers.engine import DOCKER, ENGINES, connect, image_digest
from gumshoe.env.sandboxes.containers.pull import compressed_size, is_pullable, provide_image, pull_error, source_of
from gumshoe.env.sandboxes.docker import REPOSITORY
from gumshoe.errors import SandboxError, TaskError
from gumshoe.records import Task, WorkspaceSpec
from support.sandboxes.sandbox_backends import ISOLATED


@pytest.mark.needs("docker")
def test_a_registry_that_stops_answering_is_given_up() -> None:
    over = threading.Event()

    class Stalled(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path != "/v2/":
                over.wait(60)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_HEAD(self) -> None:
            self.do_GET()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Stalled)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    image = f"127.0.0.1:{server.server_port}/any:1"
    try:
        with pytest.raises(SandboxError, match=r"cannot be reached \(timed out: no progress for 1.5 s"):
            provide_image(image, DOCKER, SandboxConfig(kind="docker", pull_stall_s=1.5))
    finally:
        over.set()
        server.shutdown()
        server.server_close()


def test_what_engines_say_is_put_in_plain_words() -> None:
    said = {
        "write /var/lib/docker/tmp/GetImageBlob1: no space left on device": (SandboxError, "the engine's disk is full"),
        "toomanyrequests: You have reached your pull rate limit.": (SandboxError, "allows no more pulls for now"),
        "pull access denied for a/b, repository does not exist or may require 'docker login': denied: requested access "
        "to the resource is denied": (TaskError, "it does not exist, or you have to log in"),
        "unauthorized: authentication required": (SandboxError, "the registry refuses access"),
        "manifest for a/b:1 not found: manifest unknown": (TaskError, "the registry has no such image"),
        'Get "https://registry-1.docker.io/v2/": dial tcp: lookup registry-1.docker.io: no such host': (
            SandboxError,
            "the registry cannot be reached",
        ),
        "something else": (SandboxError, "cannot be pulled: something else"),
    }
    for words, (kind, text) in said.items():
        error = pull_error("a/b:1", "a/b:1", words)
        assert type(error) is kind
        assert text in str(error)


@pytest.mark.parametrize(
    ("setting", "said"),
    [("mirror=http://localhost", "mirror"), ("mirrors=localhost:5000", "mirror"), ("pull=often", "pull")],
)
def test_the_check_takes_settings_of_the_sandbox(setting: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tasks", "check", "casebook", "-p", setting]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "the sandbox of -p" in line
    assert said in line


def test_a_mirror_is_put_before_the_name() -> None:
    assert source_of("swebench/a:1", "localhost:5000") == "localhost:5000/swebench/a:1"
    assert source_of("docker.io/swebench/a:1", "host/proxy") == "host/proxy/swebench/a:1"
    assert source_of("localhost:5000/a", "localhost:5000") == "localhost:5000/a"
    assert source_of("a@sha256:00", "localhost:5000") == "a@sha256:00"
    assert source_of("a", None) == "a"
    for wrong in ("http://localhost:5000", "localhost:5000/", "", "a b"):
        with pytest.raises(ValidationError):
            SandboxConfig(mirror=wrong)


def test_the_default_image_is_asked_only_of_a_mirror() -> None:
    default = SandboxConfig().image
    assert not is_pullable(default, SandboxConfig())
    assert is_pullable(default, SandboxConfig(mirror="localhost:5000"))
    assert is_pullable("a", SandboxConfig())
    assert not is_pullable("a", SandboxConfig(pull="never", mirror="localhost:5000"))


# --- the size, by a registry's manifests; whatever else it answers counts as unknown

ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
INDEX = {
    "manifests": [
        {"digest": "sha256:other", "platform": {"architecture": "s390x"}},
        {"digest": "sha256:mine", "platform": {"architecture": ARCHITECTURE}},
    ]
}
ANSWERS: dict[str, Any] = {
    "/token?service=here&scope=repository%3Aa%2Fb%3Apull": {"token": "word"},
    "/v2/a/b/manifests/1": INDEX,
    "/v2/a/b/manifests/sha256:mine": {"layers": [{"size": 30}, {"size": 12}]},
    "/v2/a/b/manifests/sha256:other": {"layers": [{"size": 999}]},
    "/v2/a/b/manifests/negative": {"layers": [{"size": -5}, {"size": 7}]},
    "/v2/a/b/manifests/infinite": {"layers": [{"size": float("inf")}]},
    "/v2/a/b/manifests/words": {"layers": "many"},
    "/v2/a/b/manifests/list": [1],
    "/v2/a/b/manifests/empty": {"manifests": []},
    "/v2/a/b/manifests/round": INDEX | {"manifests": [{"digest": "sha256:none"}]},
}


class Registry(BaseHTTPRequestHandler):
    """Asks for a token, as Docker Hub does of everybody."""

    def do_GET(self) -> None:
        if self.path.startswith("/v2/") and self.headers.get("Authorization") != "Bearer word":
            self.send_response(401)
            realm = f"http://{self.headers['Host']}/token"
            challenge = f'Bearer realm="{realm}",service="here",scope="repository:a/b:pull"'
            self.send_header("WWW-Authenticate", challenge)
            self.end_headers()
            return
        self.send_response(200 if self.path in ANSWERS else 404)
        self.end_headers()
        self.wfile.write(json.dumps(ANSWERS.get(self.path)).encode())

    def log_message(self, format: str, *args: object) -> None:
        del format, args


@pytest.fixture(scope="module")
def host() -> Generator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Registry) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def test_with_a_token_the_layers_for_this_machine_are_counted(host: str) -> None:
    assert compressed_size(f"{host}/a/b:1") == 42


@pytest.mark.parametrize("tag", ["infinite", "words", "list", "empty", "round", "gone"])
def test_junk_is_an_unknown_size(host: str, tag: str) -> None:
    assert compressed_size(f"{host}/a/b:{tag}") == 0


def test_no_layer_takes_less_than_nothing(host: str) -> None:
    assert compressed_size(f"{host}/a/b:negative") == 7


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

"""What is asked of registries, and what is said of their answers."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from pydantic import ValidationError

from gumshoe.cli import main
from gumshoe.env import SandboxConfig
from gumshoe.env.sandboxes.containers.engine import DOCKER
from gumshoe.env.sandboxes.containers.pull import is_pullable, provide_image, pull_error, source_of
from gumshoe.errors import SandboxError, TaskError


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

"""What an image will take is read from a registry's manifests; whatever else the registry answers counts as unknown."""

from __future__ import annotations

import json
import platform
import threading
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from gumshoe.env.sandboxes.containers.registry import compressed_size

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

"""The server's process: it is started, dies, comes back, and ends with whoever started it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from gumshoe.errors import ServeError
from gumshoe.eval.config import ServeConfig
from gumshoe.eval.serve import ModelServer
from support.sandboxes.processes import state

GUARDIAN = Path(__file__).parents[2] / "eval" / "serve" / "guardian.py"


def until(condition: Callable[[], bool], seconds: float = 120.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return False


def gone(pid: int) -> bool:
    return state(pid) in {"Z", ""}


# --- life and death -----------------------------------------------------------------------------------------------

FAKE = """
import http.server, os, pathlib, sys
crashes = pathlib.Path(sys.argv[0]).parent / "crashes"
port = int(sys.argv[sys.argv.index("--port") + 1])
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/die":
            print("out of memory, says the server", flush=True)
            os._exit(7)
        self.send_response(200); self.end_headers(); self.wfile.write(str(os.getpid()).encode())
    def log_message(self, *arguments): pass
print("starting", flush=True)
if crashes.exists():
    print("the weights do not fit", flush=True)
    sys.exit(3)
http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""


@pytest.fixture
def small_server(tmp_path: Path, micro_model: Path) -> Iterator[Callable[..., ModelServer]]:
    """Makes servers whose program is a small real HTTP server, installed where `python -m` finds vLLM's."""
    package = tmp_path / "site" / "vllm" / "entrypoints" / "openai"
    package.mkdir(parents=True)
    (package / "api_server.py").write_text(FAKE)
    metadata = tmp_path / "site" / "vllm-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: vllm\nVersion: 1.0\n")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path / "site"} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    made: list[ModelServer] = []

    def make(**options: Any) -> ModelServer:
        given: dict[str, Any] = {"startup_s": 120.0, **options}
        config = ServeConfig(backend="vllm", python=str(python), **given)
        made.append(ModelServer(micro_model, config, log=tmp_path / "server.log"))
        return made[-1]

    yield make
    for server in made:
        server.close()


def get(base_url: str, path: str = "/health") -> str:
    try:
        return httpx2.get(base_url.removesuffix("/v1") + path, timeout=5).text
    except httpx2.HTTPError:
        return ""


def test_a_server_that_dies_is_started_again_on_the_same_port(small_server: Callable[..., ModelServer]) -> None:
    with small_server(restarts=1) as server:
        first = get(server.base_url)
        get(server.base_url, "/die")
        assert until(lambda: get(server.base_url) not in ("", first))
        assert server.restarts == 1
        get(server.base_url, "/die")
        with pytest.raises(ServeError, match=r"died \(exit code 7\) after 1 restarts: out of memory, says the server"):
            server.wait()


def test_a_server_that_dies_at_once_gives_its_last_words(
    small_server: Callable[..., ModelServer], tmp_path: Path
) -> None:
    server = small_server()
    (tmp_path / "site" / "vllm" / "entrypoints" / "openai" / "crashes").touch()
    with pytest.raises(ServeError, match=r"died \(exit code 3\): the weights do not fit \(all of it: .*server\.log\)"):
        server.start()


def test_what_cannot_be_started_is_refused(
    small_server: Callable[..., ModelServer], micro_model: Path, tmp_path: Path
) -> None:
    in_transformers = ServeConfig(backend="transformers", name="a/b")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for server, said in (
            (small_server(startup_s=0.01), r"did not answer within 0\.01 s"),
            (small_server(port=port), f"port {port} on 127.0.0.1 cannot be used .*another --port"),
            (small_server(host="192.0.2.1"), r"cannot listen on 192.0.2.1 \(Cannot assign requested address\)"),
            (ModelServer(micro_model, ServeConfig(), log=tmp_path), f"the log {tmp_path} cannot be written: Is a dir"),
            (ModelServer(micro_model, in_transformers), "cannot serve a model as 'a/b'"),
            (ModelServer(Path("/nowhere")), r"there is no model folder .*nowhere"),
        ):
            with pytest.raises(ServeError, match=said):
                server.start()


def test_killing_whoever_started_it_stops_the_server(small_server: Callable[..., ModelServer], tmp_path: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path\n"
        "from gumshoe.eval.serve import ModelServer; from gumshoe.eval.config import ServeConfig\n"
        "server = ModelServer(Path(sys.argv[1]), ServeConfig(backend='vllm', python=sys.argv[2]))\n"
        "server.start(); print(server.base_url, flush=True); time.sleep(600)"
    )
    shape = small_server()
    parent = subprocess.Popen(
        [sys.executable, "-c", program, str(shape.folder), str(shape.config.python)], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    base_url = parent.stdout.readline().strip()
    pid = int(get(base_url))
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert until(lambda: gone(pid))


def run_guardian(*argv: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-I", str(GUARDIAN), *argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        ((sys.executable, "-c", "raise SystemExit(5)"), 5),
        ((sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"), 137),
        (("/nowhere/program",), 127),
    ],
)
def test_the_guardian_passes_the_exit_code_on(argv: tuple[str, ...], code: int) -> None:
    with run_guardian(*argv) as guardian:
        assert guardian.wait(timeout=120) == code


@pytest.mark.parametrize("how", ["pipe", "signal"])
def test_the_guardian_takes_children_down_too(how: str) -> None:
    code = (
        "import subprocess, sys, time\n"
        "deaf = 'import signal, time; signal.signal(15, signal.SIG_IGN); print(1, flush=True); time.sleep(600)'\n"
        "child = subprocess.Popen([sys.executable, '-c', deaf], stdout=subprocess.PIPE)\n"
        "child.stdout.readline(); print(child.pid, flush=True); time.sleep(600)"
    )
    with run_guardian(sys.executable, "-c", code) as guardian:
        assert guardian.stdout is not None
        assert guardian.stdin is not None
        child = int(guardian.stdout.readline())
        if how == "pipe":
            guardian.stdin.close()
        else:
            os.kill(guardian.pid, signal.SIGTERM)
        guardian.wait(timeout=120)
    assert until(lambda: gone(child))


def test_the_command_serves_until_it_is_told_to_stop(small_server: Callable[..., ModelServer], tmp_path: Path) -> None:
    shape = small_server()
    argv = [sys.executable, "-m", "gumshoe", "serve", str(shape.folder), "--port", "0", "--backend", "vllm"]
    argv += ["--python", str(shape.config.python), "--log", str(tmp_path / "log")]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as command:
        assert command.stdout is not None
        lines = [command.stdout.readline() for _ in range(5)]
        assert "-m vllm.entrypoints.openai.api_server" in lines[0]
        pid = int(get(lines[2].split()[-1]))
        os.kill(command.pid, signal.SIGTERM)
        assert command.wait(timeout=120) == 0
    assert gone(pid)

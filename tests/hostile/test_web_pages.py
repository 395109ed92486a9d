"""No server that a command starts answers a web page that it did not send, over HTTP or WebSockets."""

import http.client
import signal
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from support.collect.small_trajectories import trajectory
from support.eval.view_samples import write_run

for package in ("fastapi", "mcp", "openenv", "starlette"):
    pytest.importorskip(package, reason="needs the extras mcp, openenv and view")

pytestmark = pytest.mark.needs("bubblewrap")
LIMIT_S = 120
BUBBLEWRAP = ("-p", "sandbox.kind=bubblewrap")
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "view": ("view", "{folder}", "--port", "0"),
    "mcp": ("mcp", "{folder}", "--http", "--port", "0", *BUBBLEWRAP),
    "openenv": ("openenv", "casebook", "--port", "0", *BUBBLEWRAP),
}
PATHS = {"view": "/api/overview", "mcp": "/mcp", "openenv": "/state"}
UPGRADE = {
    "connection": "Upgrade",
    "upgrade": "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==",
}
PAGES = {
    "rebound": {"host": "evil.example"},
    "rebound with a port": {"host": "127.0.0.1.evil.example:80"},
    "another site": {"origin": "https://evil.example"},
    "another port": {"origin": "http://127.0.0.1:1"},
    "a sandboxed frame or a file": {"origin": "null"},
    "no origin, another site": {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"},
    "no origin, another port": {"sec-fetch-site": "same-site", "sec-fetch-mode": "cors"},
}


@contextmanager
def command(name: str, folder: Path, *options: str) -> Generator[str]:
    """A running server; gives its host and port."""
    words = [word.format(folder=folder) for word in COMMANDS[name]]
    argv = [sys.executable, "-m", "gumshoe", *words, *options]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
        assert server.stdout is not None
        try:
            line = server.stdout.readline()
            assert "http://" in line
            yield urlsplit(line[line.index("http://") :].split()[0]).netloc
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(LIMIT_S)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("repository")
    (folder / "test_one.py").write_text("def test_one():\n    assert False\n")
    write_run(folder / "run", [trajectory()])
    return folder


@pytest.fixture(scope="module")
def servers(folder: Path) -> Generator[Mapping[str, str]]:
    """The address of each command's server."""
    with ExitStack() as stack:
        yield {name: stack.enter_context(command(name, folder)) for name in COMMANDS}


def status(address: str, path: str, headers: Mapping[str, str], method: str = "GET") -> int:
    connection = http.client.HTTPConnection(address, timeout=LIMIT_S)
    try:
        connection.putrequest(method, path, skip_host=True)
        for name, value in {"host": address, **headers}.items():
            connection.putheader(name, value)
        connection.endheaders()
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.parametrize("page", PAGES)
def test_a_page_from_elsewhere_is_refused(servers: Mapping[str, str], page: str) -> None:
    expected = 421 if "host" in PAGES[page] else 403
    for name, address in servers.items():
        assert status(address, PATHS[name], PAGES[page]) == expected
        assert status(address, PATHS[name], {**PAGES[page], "content-length": "0"}, "POST") == expected
    assert status(servers["openenv"], "/ws", {**UPGRADE, **PAGES[page]}) == expected


def test_programs_and_its_own_pages_are_answered(servers: Mapping[str, str]) -> None:
    for name, address in servers.items():
        port = address.rpartition(":")[2]
        origin = {"origin": f"http://{address}"}
        for headers in ({}, {"host": f"localhost:{port}"}, {**origin, "sec-fetch-site": "same-origin"}):
            assert status(address, PATHS[name], headers) not in (401, 403, 421)
        if name == "openenv":
            assert [status(address, "/ws", {**UPGRADE, **more}) for more in ({}, origin)] == [101, 101]


@pytest.mark.parametrize("name", COMMANDS)
def test_with_a_token_nothing_is_answered_without_it(name: str, folder: Path) -> None:
    with command(name, folder, "--token", "sesame") as address:
        path = "/ws" if name == "openenv" else PATHS[name]
        upgrade = UPGRADE if name == "openenv" else {}
        for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": "sesame"}):
            assert status(address, path, {**upgrade, **headers}) == 401
        assert status(address, path, {**upgrade, "authorization": "Bearer sesame"}) not in (401, 403, 421)

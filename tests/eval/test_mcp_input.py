"""What `gumshoe mcp` makes of a standard input that no client writes to."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

HELLO = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},'
    b'"clientInfo":{"name":"x","version":"1"}}}\n'
)
LIMIT_S = 60.0


def argv(folder: Path) -> list[str]:
    (folder / "a.py").write_text("a = 1\n")
    return [sys.executable, "-m", "gumshoe", "mcp", str(folder)]


@pytest.mark.parametrize("piped", [False, True])
def test_input_that_ends_ends_the_server(tmp_path: Path, piped: bool) -> None:
    folder, file = tmp_path / "folder", tmp_path / "input"
    folder.mkdir()
    file.write_bytes(b"junk\n\n\xff\n" * 500 + HELLO)
    if piped:
        done = subprocess.run(argv(folder), input=file.read_bytes(), capture_output=True, timeout=LIMIT_S, check=False)
    else:
        with file.open("rb") as source:
            done = subprocess.run(argv(folder), stdin=source, capture_output=True, timeout=LIMIT_S, check=False)
    assert (done.returncode, b"Traceback" in done.stderr) == (0, False)
    assert b'"id":1,"result"' in done.stdout


def test_the_null_device_is_input_that_has_ended(tmp_path: Path) -> None:
    done = subprocess.run(argv(tmp_path), stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT_S, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize(
    ("number", "code", "said"),
    [(signal.SIGINT, 130, b"gumshoe mcp: interrupted\n"), (signal.SIGTERM, 0, b"")],
)
def test_ctrl_c_is_told_from_a_client_that_ends_its_server(
    tmp_path: Path, number: signal.Signals, code: int, said: bytes
) -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen(argv(tmp_path), stdin=pipe, stdout=pipe, stderr=pipe) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        assert server.stderr is not None
        server.stdin.write(HELLO)
        server.stdin.flush()
        assert b'"id":1' in server.stdout.readline()
        server.send_signal(number)
        assert server.wait(LIMIT_S) == code
        assert server.stderr.read() == said

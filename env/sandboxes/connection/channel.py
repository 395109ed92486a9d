"""The connection to a warden: one JSON request out, one answer back, enclosed in a nonce nobody can guess.

A fresh interpreter is started at the other end of a terminal with `-c` and a small program that makes its terminal
raw, prints a word to say so, reads the package `env/inside` from the terminal and runs the warden in it. So nothing has
to be copied or mounted beforehand, and this is all that is ever sent: the warden puts the package on the sandbox's
disk.
"""

from __future__ import annotations

import functools
import json
import re
import secrets
import threading
from pathlib import Path
from typing import Any

from pexpect.exceptions import EOF, TIMEOUT
from pexpect.spawnbase import SpawnBase

from gumshoe.env.inside.loading import PACKAGE, READ
from gumshoe.env.sandboxes.connection.replies import check_reply
from gumshoe.errors import SandboxError

__all__ = ["Channel", "WardenGone", "bootstrap_argv", "package_files", "payload"]

START_TIMEOUT_S = 60.0
START = """\
import os, sys, tty
tty.setraw(0)
os.write(1, sys.argv.pop(1).encode() + b"\\n")
"""
SERVE = f"""\
from {PACKAGE}.warden.serving import serve
serve(0, 1, files)
"""


class WardenGone(SandboxError):
    """The warden died or stopped answering."""


class Channel:
    """Exchanges with one warden over a terminal that pexpect drives. Safe to use from several threads in turn."""

    def __init__(self, terminal: SpawnBase[bytes]) -> None:
        self._terminal = terminal
        terminal.delayafterread = None  # It would sleep after every read.
        self._lock = threading.Lock()
        self._sending = threading.Lock()

    def start(self, word: str) -> None:
        """Sends the sources to the interpreter that has been started with `bootstrap_argv(..., word)`.

        Raises WardenGone, with what the interpreter printed, when it does not come up.
        """
        with self._lock:
            self._expect(f"{word}\n".encode(), START_TIMEOUT_S)
            self._send(payload())

    def exchange(self, op: str, timeout: float | None = 60.0, **arguments: Any) -> Any:
        """Has the warden carry out one operation and returns its result.

        Args:
            timeout: seconds after which a warden that does not answer is given up on; None waits forever.

        Raises:
            OSError: what the operating system in the sandbox refused, as its own subclass.
            ValueError: a regular expression is wrong.
            WardenGone: there was no answer.
            SandboxError: the warden failed, or what came is not an answer to this operation.
        """
        nonce = secrets.token_hex(16)
        request = json.dumps({"nonce": nonce, "op": op, **arguments})
        with self._lock:
            self._send(request.encode("ascii") + b"\n")
            self._expect(nonce.encode(), timeout)
            answer = self._expect(f"{nonce}\n".encode(), timeout)
        return check_reply(op, _result(answer))

    def give_up(self) -> None:
        """Ends the exchange that another thread has under way, and the program that it waits for, with a SandboxError
        there. The warden stays usable. Raises WardenGone.
        """
        # When the host says anything, the warden takes it to be done waiting; the answer to this request is noise.
        request = json.dumps({"nonce": secrets.token_hex(16), "op": "ping"})
        self._send(request.encode("ascii") + b"\n")

    def _send(self, data: bytes) -> None:
        view = memoryview(data)
        try:
            with self._sending:
                while view:
                    view = view[self._terminal.send(bytes(view)) :]  # pyright: ignore[reportAttributeAccessIssue]
        except OSError as error:
            raise WardenGone(f"the sandbox is gone: {error.strerror or error}") from None

    def _expect(self, marker: bytes, timeout: float | None) -> bytes:
        """What came before the marker."""
        try:
            self._terminal.expect_exact(marker, timeout=timeout)  # pyright: ignore[reportArgumentType]
        except EOF:
            raise WardenGone(f"the sandbox is gone{_last_log_line(self._terminal.before)}") from None
        except TIMEOUT:
            raise WardenGone(f"the sandbox did not respond for {timeout:g} s") from None
        except OSError as error:
            raise WardenGone(f"the sandbox is gone: {error.strerror or error}") from None
        before = self._terminal.before
        return before if isinstance(before, bytes) else b""


def _result(text: bytes) -> Any:
    """The result that an answer holds; raises the error that it reports."""
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        raise SandboxError("the sandbox's answer is not JSON") from None
    match answer:
        case {"ok": result}:
            return result
        case {"errno": int(number), "text": str(why), "path": str() | None as path}:
            raise OSError(number, why, path)
        case {"stopped": str(why)}:
            raise SandboxError(why)
        case {"invalid": str(why)}:
            raise ValueError(why)
        case {"broken": str(trace)}:
            error = SandboxError(f"the warden failed: {(trace.strip().splitlines() or ['?'])[-1]}")
            error.add_note(trace)
            raise error
        case _:
            raise SandboxError("the sandbox's answer is not a valid warden response")


def _last_log_line(before: object) -> str:
    """The last line that was printed, as `: line`, or nothing."""
    if not isinstance(before, bytes):
        return ""
    lines = [line for line in re.split(r"[\r\n]+", before.decode("utf-8", "replace")) if line.strip()]
    return f": {lines[-1].strip()}" if lines else ""


def bootstrap_argv(python: str, word: str) -> list[str]:
    """The command line that waits for `payload()`; it prints `word` when it is ready for it."""
    return [python, "-I", "-S", "-c", START + READ + SERVE, word, str(len(payload()))]


@functools.cache
def payload() -> bytes:
    """The package as JSON in ASCII."""
    return json.dumps(package_files()).encode("ascii")


@functools.cache
def package_files() -> dict[str, str]:
    """The texts of `env/inside`, by their paths in a sandbox's support folder."""
    folder = Path(__file__).parents[2] / "inside"
    paths = sorted(folder.rglob("*.py"))
    return {f"{PACKAGE}/{path.relative_to(folder).as_posix()}": path.read_text(encoding="ascii") for path in paths}

"""Where an MCP server runs, and how messages reach it: in the sandbox of an episode, or on the host."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import IO, Any, Protocol

from gumshoe.protocols import Sandbox
from gumshoe.text import cut_line, plain_text
from gumshoe.tools.runs.interpreters import PLAIN_OUTPUT, our_program

__all__ = ["HostLink", "McpLink", "SandboxLink", "ServerEnded"]

_TAIL = 2000
_MOST_BYTES = 8 << 20
_GRACE_S = 2.0


class ServerEnded(Exception):
    """The server did not start, or runs no more; the message says why in one line."""


class McpLink(Protocol):
    """A running server."""

    def send(self, message: dict[str, Any]) -> None:
        """Sends a message, at the latest when the next one is waited for."""
        ...

    def receive(self, timeout: float) -> dict[str, Any]:
        """The next message of the server. Raises ServerEnded, and TimeoutError after `timeout` seconds."""
        ...

    def close(self) -> None:
        """Ends the server and what it started. Idempotent."""
        ...


class SandboxLink:
    """A server in a sandbox, started in the workspace. Raises SandboxError where the sandbox itself broke."""

    def __init__(self, sandbox: Sandbox, argv: Sequence[str]) -> None:
        carrier = [sandbox.python, *our_program(sandbox.support, "programs.mcp")]
        self._session = sandbox.open_session([*carrier, *argv], env=PLAIN_OUTPUT)
        self._unsent: list[Any] = []
        self._printed = ""

    def send(self, message: dict[str, Any]) -> None:
        """Keeps it for the next `receive`: the session answers each request once."""
        self._unsent.append(message)

    def receive(self, timeout: float) -> dict[str, Any]:
        """The next message."""
        messages, self._unsent = self._unsent, []
        reply = self._session.request({"messages": messages}, max(timeout, 0.0))
        self._printed = (self._printed + reply.output)[-_TAIL:]
        if reply.timed_out:
            raise TimeoutError
        found = (reply.message or {}).get("message")
        if isinstance(found, dict):
            return found
        raise ServerEnded(_why((reply.message or {}).get("ended"), self._printed))

    def close(self) -> None:
        """Ends all that runs in the session."""
        self._session.close()


class HostLink:
    """A server on this machine, with the few variables of the environment that the SDK gives to servers.

    Raises:
        ServerEnded: the program cannot be started.
    """

    def __init__(self, argv: Sequence[str]) -> None:
        from mcp.client.stdio import get_default_environment

        self._unsent: list[dict[str, Any]] = []
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the server
        try:
            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env={**get_default_environment(), **PLAIN_OUTPUT},
                start_new_session=True,
            )
        except OSError as error:
            self._errors.close()
            raise ServerEnded(f"{argv[0]}: {error.strerror}") from None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in, self._out = self._process.stdin, self._process.stdout
        self._timed_out = False

    def send(self, message: dict[str, Any]) -> None:
        """Keeps it for the next `receive`, which has a time limit."""
        self._unsent.append(message)

    def receive(self, timeout: float) -> dict[str, Any]:
        """The next message; lines that are no JSON object are left out. At the time limit the server is killed."""
        messages, self._unsent = self._unsent, []
        timer = threading.Timer(max(timeout, 0.0), self._stop)
        timer.start()
        try:
            self._in.write(b"".join(json.dumps(message).encode("ascii") + b"\n" for message in messages))
            self._in.flush()
            while (line := self._out.readline(_MOST_BYTES)).endswith(b"\n"):
                with suppress(ValueError, RecursionError):
                    found = json.loads(line)
                    if isinstance(found, dict):
                        return found
        except BrokenPipeError:
            line = b""
        finally:
            timer.cancel()
        if self._timed_out:
            raise TimeoutError
        raise ServerEnded("it wrote a line of more than 8 MiB") if line else self._ended()

    def _stop(self) -> None:
        self._timed_out = True
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        """To the server and its children."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def _ended(self) -> ServerEnded:
        try:
            how = f"it ended with exit code {self._process.wait(_GRACE_S)}"
        except subprocess.TimeoutExpired:
            how = "it closed its input or output"
        self._errors.seek(max(0, os.fstat(self._errors.fileno()).st_size - _TAIL))
        return ServerEnded(_why(how, self._errors.read().decode("utf-8", "replace")))

    def close(self) -> None:
        """Asks the server and its children to end, then kills them."""
        if self._errors.closed:
            return
        for number in (signal.SIGTERM, signal.SIGKILL):
            self._signal(number)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_GRACE_S)
        for file in (self._in, self._out, self._errors):
            with suppress(BrokenPipeError):
                file.close()


def _why(how: object, printed: str) -> str:
    """How a server ended, with the last line of what it said."""
    how = how if isinstance(how, str) else "it ended"
    said = plain_text(printed).strip().rpartition("\n")[2]
    return cut_line(f"{how}: {said}" if said else how)

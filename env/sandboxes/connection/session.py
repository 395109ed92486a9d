"""An interactive program in a sandbox: `protocols.Session`, asked of the warden."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from pydantic import JsonValue

from gumshoe.env.sandboxes.connection.link import RPC_GRACE_S, WardenConnection
from gumshoe.env.sandboxes.connection.replies import text_of
from gumshoe.errors import SandboxClosed, SandboxError
from gumshoe.records import SessionReply

__all__ = ["WardenSession"]


class WardenSession:
    """See `protocols.Session`. Use `WardenSandbox.open_session` to make one.

    The terminal does not echo, and a line printed ends in a plain newline.

    Attributes:
        name: what the warden calls it.
        warm: whether the program is a fork of the test server.
        cold: why it is not, if it was meant to be.
    """

    def __init__(self, name: str, link: WardenConnection, *, warm: bool = False, cold: str | None = None) -> None:
        self.name = name
        self.warm = warm
        self.cold = cold
        self._link = link
        self._closed = False

    def send(self, data: str) -> None:
        """Types `data` at the terminal."""
        encoded = base64.b64encode(data.encode("utf-8", "surrogateescape")).decode("ascii")
        self._op("session_write", data=encoded)

    def read_until(self, marker: str, timeout: float) -> SessionReply:
        """Reads the terminal until `marker` has been printed, the program has ended, or `timeout` has passed."""
        encoded = base64.b64encode(marker.encode()).decode("ascii")
        return _reply(self._op("session_read_until", timeout, marker=encoded, timeout_s=timeout))

    def request(self, message: Mapping[str, JsonValue], timeout: float) -> SessionReply:
        """Sends one message on the control channel and waits for the answer."""
        return _reply(self._op("session_request", timeout, message=dict(message), timeout_s=timeout))

    def wait_message(self, timeout: float) -> SessionReply:
        """Waits for the answer to the last request."""
        return _reply(self._op("session_wait_message", timeout, timeout_s=timeout))

    def interrupt(self) -> None:
        """Sends SIGINT to the program in the foreground."""
        self._op("session_signal", name="INT")

    @property
    def alive(self) -> bool:
        """Whether the program is still running."""
        if self._closed or self._link.closed:
            return False
        return self._op("session_poll") == {"exit_code": None}

    def close(self) -> None:
        """Kills the program and all it started. Idempotent."""
        if not self._closed and not self._link.closed:
            self._op("session_close")
        self._closed = True

    def _op(self, op: str, wait: float = 0.0, **arguments: Any) -> Any:
        if self._closed:
            raise SandboxClosed("the session has been closed")
        try:
            return self._link.ask(op, wait + RPC_GRACE_S, session=self.name, **arguments)
        except OSError as error:
            raise SandboxError(f"the session failed: {error.strerror}") from None


def _reply(data: dict[str, Any]) -> SessionReply:
    text, truncated = text_of(data["output"])
    return SessionReply.model_construct(  # `check_reply` has looked at all of it.
        output=text,
        message=data["message"],
        interim=tuple(data["interim"]),
        timed_out=data["timed_out"],
        truncated=truncated,
        exit_code=data["exit_code"],
    )

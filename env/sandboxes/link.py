"""The way to a sandbox's warden: starting it, asking things of it, saying goodbye."""

from __future__ import annotations

import secrets
from typing import Any

from gumshoe.env.sandboxes.backend import Backend
from gumshoe.env.sandboxes.bootstrap import bootstrap_argv
from gumshoe.env.sandboxes.channel import Channel
from gumshoe.errors import SandboxClosed, SandboxError

__all__ = ["SLACK_S", "Link"]

SLACK_S = 60.0


class Link:
    """Starts the warden of a backend and asks things of it.

    Attributes:
        facts: what the warden said about the sandbox: `root`, `state`, `python`, `environment`.
        closed: whether `close` has been called.

    Args:
        output_limit: bytes kept of one program's output.
    """

    def __init__(self, backend: Backend, output_limit: int) -> None:
        self._backend = backend
        self._output_limit = output_limit
        self.closed = False
        try:
            self._channel = self._connect()
            self.facts = self._configure()
        except BaseException:
            self._release()
            raise

    def ask(self, op: str, timeout: float | None = SLACK_S, **arguments: Any) -> Any:
        """One exchange. Raises SandboxClosed, and as `Channel.exchange` does."""
        if self.closed:
            raise SandboxClosed("the sandbox has been closed")
        return self._channel.exchange(op, timeout, **arguments)

    def close(self) -> None:
        """Kills everything and removes what was made. Idempotent."""
        if self.closed:
            return
        try:
            self._channel.exchange("bye", timeout=SLACK_S)
        except SandboxError:
            pass  # It is gone already, or will not hear us; the backend kills what is left.
        finally:
            self._release()

    def _connect(self) -> Channel:
        word = secrets.token_hex(16)
        channel = Channel(self._backend.connect(bootstrap_argv(self._backend.place.python, word)))
        channel.start(word)
        return channel

    def _configure(self) -> dict[str, Any]:
        place = self._backend.place
        return self._channel.exchange(
            "configure",
            root=place.root,
            state=place.state,
            limits=dict(place.limits),
            cap=self._output_limit,
            environment=dict(place.environment),
            disposable=place.disposable,
            user=place.user,
            disk=place.disk,
        )

    def _release(self) -> None:
        self.closed = True
        self._backend.close()

"""The way to a sandbox's warden: starting it, asking things of it, saying goodbye."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from gumshoe.env.sandboxes.backend import Backend
from gumshoe.env.sandboxes.bootstrap import bootstrap_argv
from gumshoe.env.sandboxes.channel import Channel
from gumshoe.errors import SandboxClosed, SandboxError

__all__ = ["SLACK_S", "Line", "Link"]

SLACK_S = 60.0


class Line(Protocol):
    """What a sandbox needs of a link: a `Link` of its own, or a lease on one from a pool."""

    backend: str
    isolated: bool
    facts: Mapping[str, Any]
    closed: bool

    def ask(self, op: str, timeout: float | None = ..., **arguments: Any) -> Any: ...

    def give_up(self) -> None: ...

    def close(self) -> None: ...


class Link:
    """Starts the warden of a backend and asks things of it.

    Attributes:
        backend: the name of the kind of sandbox.
        isolated: as in `Backend`.
        facts: what the warden said about the sandbox: `root`, `state`, `python`, `environment`.
        closed: whether `close` has been called.

    Args:
        output_limit: bytes kept of one program's output.
    """

    def __init__(self, backend: Backend, output_limit: int) -> None:
        self.backend = backend.name
        self.isolated = backend.isolated
        self._backend = backend
        self._output_limit = output_limit
        self.closed = False
        try:
            self._channel = self._connect()
            self.facts = self.configure()
        except OSError as error:
            self._release()
            raise SandboxError(f"the sandbox's folders cannot be made: {error.strerror} ({error.filename})") from None
        except BaseException:
            self._release()
            raise

    def ask(self, op: str, timeout: float | None = SLACK_S, **arguments: Any) -> Any:
        """One exchange. Raises SandboxClosed, and as `Channel.exchange` does."""
        if self.closed:
            raise SandboxClosed("the sandbox has been closed")
        return self._channel.exchange(op, timeout, **arguments)

    def give_up(self) -> None:
        """Ends what another thread waits for; see `Channel.give_up`."""
        if not self.closed:
            self._channel.give_up()

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

    @property
    def scratch(self) -> Sequence[str]:
        """The folders that programs can write in, where these are all; see `Place`."""
        return self._backend.place.scratch

    def configure(self) -> Mapping[str, Any]:
        """Tells the warden where things are and what programs may use, and makes the workspace's folder."""
        place = self._backend.place
        return self._channel.exchange(
            "configure",
            root=place.root,
            state=place.state,
            limits=dict(place.limits),
            cap=self._output_limit,
            environment=dict(place.environment),
            disposable=place.disposable,
            folders=list(place.folders),
            user=place.user,
            disk=place.disk,
        )

    def _release(self) -> None:
        self.closed = True
        self._backend.close()

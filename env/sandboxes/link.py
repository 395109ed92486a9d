"""The connection to a sandbox's warden: starting it, calling its operations, shutting it down."""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gumshoe.env.sandboxes.backend import Backend
from gumshoe.env.sandboxes.channel import Channel, bootstrap_argv
from gumshoe.errors import SandboxClosed, SandboxError

__all__ = ["RPC_GRACE_S", "BorrowedLink", "Link", "WardenConnection"]

RPC_GRACE_S = 60.0


class Link:
    """Starts the warden of a backend and asks things of it.

    Attributes:
        backend: the name of the kind of sandbox.
        isolated: as in `Backend`.
        facts: what the warden said about the sandbox: `root`, `state`, `python`, `environment`; and its `image_digest`.
        closed: whether `close` has been called.
        server: how the test server was last asked for, if it was.

    Args:
        output_limit: bytes kept of one program's output.
    """

    def __init__(self, backend: Backend, output_limit: int) -> None:
        self.backend = backend.name
        self.isolated = backend.isolated
        self._backend = backend
        self._output_limit = output_limit
        self.closed = False
        self.server: Mapping[str, Any] | None = None
        try:
            self._channel = self._connect()
            self.facts: Mapping[str, Any] = {**self.configure(), "image_digest": backend.image_digest}
        except OSError as error:
            self._release()
            raise SandboxError(f"the sandbox's folders cannot be made: {error}") from None
        except BaseException:
            self._release()
            raise

    def ask(self, op: str, timeout: float | None = RPC_GRACE_S, **arguments: Any) -> Any:
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
            self._channel.exchange("shutdown", timeout=RPC_GRACE_S)
        except SandboxError:
            pass  # It is gone already, or does not answer; the backend kills what is left.
        finally:
            self._release()

    def _connect(self) -> Channel:
        word = secrets.token_hex(16)
        channel = Channel(self._backend.connect(bootstrap_argv(self._backend.layout.python, word)))
        channel.start(word)
        return channel

    @property
    def scratch(self) -> Sequence[str]:
        """The folders that programs can write in, if they can write nowhere else; see `SandboxLayout`."""
        return self._backend.layout.scratch

    def configure(self) -> Mapping[str, Any]:
        """Tells the warden where things are and what programs may use, and makes the workspace's folder."""
        layout = dataclasses.asdict(self._backend.layout)
        for_the_host = ("python", "scratch")
        wanted = {name: value for name, value in layout.items() if name not in for_the_host}
        return self._channel.exchange("configure", layout=wanted, cap=self._output_limit)

    def _release(self) -> None:
        self.closed = True
        self._backend.close()


class BorrowedLink:
    """One use of a link that somebody else ends.

    Attributes:
        backend, isolated, facts, server: as those of a `Link`.
        closed: whether this use has ended.

    Args:
        link: what is used.
        give_back: called once, at the end.
    """

    def __init__(self, link: Link | BorrowedLink, give_back: Callable[[], object]) -> None:
        self._link = link
        self._give_back = give_back
        self.backend = link.backend
        self.isolated = link.isolated
        self.facts = link.facts
        self.server = link.server
        self.closed = False

    def ask(self, op: str, timeout: float | None = RPC_GRACE_S, **arguments: Any) -> Any:
        """One exchange. Raises SandboxClosed after the end, and as `Channel.exchange` does."""
        if self.closed:
            raise SandboxClosed("the sandbox has been closed")
        return self._link.ask(op, timeout, **arguments)

    def give_up(self) -> None:
        """Ends what another thread waits for; see `Channel.give_up`."""
        if not self.closed:
            self._link.give_up()

    def close(self) -> None:
        """Gives the sandbox back. Idempotent."""
        if not self.closed:
            self.closed = True
            self._link.server = self.server
            self._give_back()


WardenConnection = Link | BorrowedLink
"""What a sandbox needs: a link of its own, or the use of somebody else's."""

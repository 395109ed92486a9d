"""The one implementation of `protocols.Sandbox` and `protocols.Session`: the warden inside carries everything out."""

from __future__ import annotations

import base64
import errno
import posixpath
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import JsonValue

from gumshoe.env.diff import GitBlob
from gumshoe.env.sandboxes.channel import RPC_GRACE_S, Link, text_of
from gumshoe.errors import SandboxClosed, SandboxError, WorkspaceDamaged
from gumshoe.records import Entry, ExecResult, Match, SessionReply
from gumshoe.tools.runs.commands import our_program, python_words

SERVER = "programs.server"
COMMANDS = ("pytest", "py.test")
START_S = 2 * RPC_GRACE_S


class WardenSandbox:
    """A sandbox with a warden in it. See `protocols.Sandbox` for what its methods do.

    Args:
        link: the way to the warden; closed with the sandbox.
        test_server: whether programs that may be forked from a test server are.
    """

    def __init__(self, link: Link, *, test_server: bool = True) -> None:
        self.backend = link.backend
        self.isolated = link.isolated
        self._link = link
        self._test_server = test_server
        facts = link.facts
        self.root: str = facts["root"]
        self.state: str = facts["state"]
        self.python: str = facts["python"]
        self.environment: dict[str, str] = facts["environment"]
        self.image_digest: str | None = facts["image_digest"]
        self._activated: dict[str, str] = {}
        self.support = f"{self.state}/support"

    def activate(self, variables: Mapping[str, str], python: str) -> None:
        """Sets variables for every program from now on, and the interpreter of our injected modules."""
        self._activated = {**self._activated, **variables}
        self.environment = {**self.environment, **variables}
        self.python = python

    def run(
        self,
        argv: Sequence[str],
        *,
        input: bytes | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
        warm: bool = False,
    ) -> ExecResult:
        """Runs a program to its end; see `protocols.Sandbox.run`. Its exit code is 128 + n when signal n ended it."""
        try:
            reply = self._link.ask(
                "run",
                None if timeout is None else timeout + RPC_GRACE_S,
                argv=list(argv),
                input=None if input is None else _encode(input),
                env=self._variables(env),
                timeout_s=timeout,
                forked=self._fork_order(argv) if warm else None,
            )
        except OSError as error:
            raise SandboxError(f"no program can be started in the sandbox: {error.strerror}") from None
        text, truncated = text_of(reply["output"])
        return ExecResult(
            exit_code=reply["exit_code"],
            output=text,
            duration_s=reply["duration_s"],
            timed_out=reply["timed_out"],
            truncated=truncated,
            warm=reply["warm"],
            cold=reply["cold"],
        )

    def real_path(self, path: str) -> str:
        """The path with its links followed, relative to the root."""
        return self._link.ask("real_path", path=path)

    def read_file(self, path: str, *, inside: bool = True) -> bytes:
        """The bytes of a regular file of at most 64 MiB."""
        return base64.b64decode(self._link.ask("read", path=path, inside=inside))

    def read_real(self, path: str) -> tuple[str, bytes]:
        """The path with its links followed, relative to the root, and the bytes of the file."""
        real, data = self._link.ask("read_real", path=path)
        return real, base64.b64decode(data)

    def write_file(
        self, path: str, data: bytes, *, inside: bool = True, mode: int | None = None, mtime: float | None = None
    ) -> None:
        """Replaces or makes a file in one step; missing folders are made."""
        self._link.ask("write", path=path, data=_encode(data), inside=inside, mode=mode, mtime=mtime)

    def remove_file(self, path: str, *, inside: bool = True) -> None:
        """Removes a file or a symbolic link."""
        self._link.ask("remove", path=path, inside=inside)

    def walk(
        self, path: str = ".", *, ignore: Sequence[tuple[bool, str]] = (), depth: int | None = None
    ) -> list[Entry]:
        """Everything below `path`; the kinds are `file`, `dir`, `link` and `other`."""
        found = self._link.ask("walk", path=path, ignore=list(ignore), depth=depth)
        return [Entry(path=name, kind=kind, size=size) for name, kind, size in found]

    def grep(
        self,
        pattern: str,
        path: str = ".",
        *,
        ignore: Sequence[tuple[bool, str]] = (),
        limit: int = 200,
    ) -> tuple[list[Match], bool]:
        """Lines that match, and whether there were more. Raises ValueError for a wrong pattern, TimeoutError for one
        that takes too long.
        """
        found = self._link.ask("grep", pattern=pattern, path=path, ignore=list(ignore), limit=limit)
        return [Match(path=name, line=line, text=text) for name, line, text in found["matches"]], found["more"]

    def unpack(self, archive: bytes, folder: str) -> None:
        """Unpacks a tar archive of the host's making below a folder, absolute or relative to the root."""
        self._put("unpack", archive=_encode(archive), folder=folder)

    def prepare_support(self) -> None:
        """Makes the support folder hold our package and nothing else, whatever has happened to it."""
        self._put("renew", folder=self.support)

    def begin_episode(self) -> None:
        """From now on, `tampering` counts what programs do."""
        self._link.ask("begin_episode")

    def tampering(self) -> tuple[str, ...]:
        """What programs did to the harness; see `protocols.Sandbox.tampering`."""
        damage: tuple[str, ...] = ()
        try:
            self.prepare_support()
        except WorkspaceDamaged as error:
            damage = (str(error),)
        python = self.python if self.isolated else None
        return (*damage, *self._link.ask("tampering", python=python, env=self._variables(None)))

    def open_session(
        self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, warm: bool = False
    ) -> WardenSession:
        """Starts a program on a terminal; see `protocols.Sandbox.open_session`."""
        forked = self._fork_order(argv) if warm else None
        try:
            name = self._link.ask("session_open", START_S, argv=list(argv), env=self._variables(env), forked=forked)
        except OSError as error:
            raise SandboxError(f"no program can be started in the sandbox: {error.strerror}") from None
        return WardenSession(name, self._link)

    def snapshot(self) -> str:
        """Keeps the workspace's files; the name stays good for as long as the sandbox lives."""
        return self._on_snapshot("snapshot")

    def restore(self, name: str, *, only: Sequence[tuple[bool, str]] | None = None) -> None:
        """Puts the workspace's files back; with `only`, just those that the patterns match.

        Raises WorkspaceDamaged where the file system refuses.
        """
        self._on_snapshot("restore", name=name, only=None if only is None else list(only))

    def changes(
        self, name: str, *, ignore: Sequence[tuple[bool, str]] = (), ignore_new: Sequence[tuple[bool, str]] = ()
    ) -> dict[str, tuple[bytes | None, bytes | None]]:
        """`GitBlob`s of the files and links that differ from the snapshot's for git.

        Args:
            name: the snapshot.
            ignore: patterns of files that are left out.
            ignore_new: patterns of files that are left out if the snapshot does not have them.

        Raises WorkspaceDamaged where one of them has more than 64 MiB, or all more than the config's `patch_mb`.
        """
        found: dict[str, list[tuple[str, str] | None]] = self._on_snapshot(
            "changes", name=name, ignore=list(ignore), ignore_new=list(ignore_new)
        )
        return {path: (_blob(before), _blob(after)) for path, (before, after) in found.items()}

    def give_up(self) -> None:
        """Ends the program that another thread waits for; there a SandboxError is raised. The sandbox stays usable."""
        self._link.give_up()

    def close(self) -> None:
        """Kills everything and removes what was made. Idempotent."""
        self._link.close()

    def __enter__(self) -> WardenSandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _variables(self, env: Mapping[str, str] | None) -> dict[str, str] | None:
        return {**self._activated, **(env or {})} or None

    def _fork_order(self, argv: Sequence[str]) -> dict[str, Any] | None:
        """How the test server is to fork a program; None if it is not a Python program or there is to be no server."""
        words = python_words(argv)
        if not self._test_server or not (words or posixpath.basename(argv[0]) in COMMANDS):
            return None
        server = [*(argv[:words] or [self.python]), *our_program(self.support, SERVER)]
        return {"argv": server, "env": self._variables(None), "program": list(argv[words:])}

    def _put(self, op: str, **arguments: Any) -> Any:
        try:
            return self._link.ask(op, RPC_GRACE_S * 5, **arguments)
        except OSError as error:
            why = f"{error.strerror} ({error.filename})"
            raise WorkspaceDamaged(f"files cannot be put into the sandbox: {why}") from None

    def _on_snapshot(self, op: str, **arguments: Any) -> Any:
        try:
            return self._link.ask(op, RPC_GRACE_S * 5, **arguments)
        except OSError as error:
            if error.filename is None and error.errno == errno.ENOENT:
                raise SandboxError(f"the snapshot cannot be used: {error.strerror}") from None
            what = "" if error.filename is None else f" ({error.filename})"
            raise WorkspaceDamaged(f"{op} of the workspace: {error.strerror}{what}") from None


def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _blob(side: tuple[str, str] | None) -> GitBlob | None:
    return None if side is None else GitBlob(base64.b64decode(side[1]), side[0])


class WardenSession:
    """See `protocols.Session`. Use `WardenSandbox.open_session` to make one.

    A line that the program prints ends in a plain newline.
    """

    def __init__(self, name: str, link: Link) -> None:
        self._name = name
        self._link = link
        self._closed = False

    def request(self, message: Mapping[str, JsonValue], timeout: float) -> SessionReply:
        """Sends one message on the control channel and waits for the answer."""
        return _reply(self._op("session_request", timeout, message=dict(message), timeout_s=timeout))

    def wait_message(self, timeout: float) -> SessionReply:
        """Waits for the answer to the last request."""
        return _reply(self._op("session_wait_message", timeout, timeout_s=timeout))

    def interrupt(self) -> None:
        """Sends SIGINT to the program in the foreground."""
        self._op("session_interrupt")

    def close(self) -> None:
        """Kills the program and all it started. Idempotent."""
        if not self._closed and not self._link.closed:
            self._op("session_close")
        self._closed = True

    def _op(self, op: str, wait: float = 0.0, **arguments: Any) -> Any:
        if self._closed:
            raise SandboxClosed("the session has been closed")
        try:
            return self._link.ask(op, wait + RPC_GRACE_S, session=self._name, **arguments)
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

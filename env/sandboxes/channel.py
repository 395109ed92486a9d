"""The connection to a warden: one JSON request out, one answer back, enclosed in a nonce nobody can guess.

A fresh interpreter is started at the other end of a terminal with `-c` and a small program that makes its terminal
raw, prints a word to say so, reads the package `env/inside` from the terminal and runs the warden in it. So nothing has
to be copied or mounted beforehand, and this is all that is ever sent: the warden puts the package on the sandbox's
disk.

Programs in the sandbox must not be able to answer in the warden's place. Should one manage it all the same, the host
still takes nothing that does not have the form of the operation's answers.
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import json
import re
import secrets
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pexpect.exceptions import EOF, TIMEOUT
from pexpect.spawnbase import SpawnBase
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from gumshoe.env.inside.loading import PACKAGE, READ
from gumshoe.env.sandboxes.backend import Backend
from gumshoe.errors import SandboxClosed, SandboxError

START_TIMEOUT_S = 60.0
RPC_GRACE_S = 60.0
"""How long a warden may take to answer, beyond what the operation itself may take."""
START = """\
import os, sys, tty
tty.setraw(0)
os.write(1, sys.argv.pop(1).encode() + b"\\n")
"""
SERVE = f"""\
from {PACKAGE}.warden.serving import serve
serve(0, 1, files)
"""


class Channel:
    """Exchanges with one warden over a terminal that pexpect drives. Safe to use from several threads in turn."""

    def __init__(self, terminal: SpawnBase[bytes]) -> None:
        self._terminal = terminal
        terminal.delayafterread = None  # It would sleep after every read.
        self._lock = threading.Lock()
        self._sending = threading.Lock()

    def start(self, word: str) -> None:
        """Sends the sources to the interpreter that has been started with `bootstrap_argv(..., word)`.

        Raises SandboxError, with what the interpreter printed, when it does not come up.
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
            SandboxError: there was no answer, the warden failed, or what came is not an answer to this operation.
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
        there. The warden stays usable. Raises SandboxError.
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
            raise SandboxError(f"the sandbox is gone: {error.strerror or error}") from None

    def _expect(self, marker: bytes, timeout: float | None) -> bytes:
        """What came before the marker."""
        try:
            self._terminal.expect_exact(marker, timeout=timeout)  # pyright: ignore[reportArgumentType]
        except EOF:
            raise SandboxError(f"the sandbox is gone{_last_log_line(self._terminal.before)}") from None
        except TIMEOUT:
            raise SandboxError(f"the sandbox did not respond for {timeout:g} s") from None
        except OSError as error:
            raise SandboxError(f"the sandbox is gone: {error.strerror or error}") from None
        before = self._terminal.before
        return before if isinstance(before, bytes) else b""


class Link:
    """Starts the warden of a backend and asks things of it.

    Attributes:
        backend: the name of the kind of sandbox.
        isolated: as in `Backend`.
        facts: what the warden said about the sandbox: `root`, `state`, `python`, `environment`; and its `image_digest`.
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
            self.facts: Mapping[str, Any] = {**self._configure(), "image_digest": backend.image_digest}
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

    def _configure(self) -> Mapping[str, Any]:
        """Tells the warden where things are and what programs may use, and makes the workspace's folder."""
        layout = dataclasses.asdict(self._backend.layout)
        del layout["python"]  # It runs the warden already.
        return self._channel.exchange("configure", layout=layout, cap=self._output_limit)

    def _release(self) -> None:
        self.closed = True
        self._backend.close()


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
    folder = Path(__file__).parents[1] / "inside"
    paths = sorted(folder.rglob("*.py"))
    return {f"{PACKAGE}/{path.relative_to(folder).as_posix()}": path.read_text(encoding="ascii") for path in paths}


Count = Annotated[int, Field(ge=0, lt=1 << 63)]
ExitCode = Annotated[int, Field(ge=0, lt=1 << 31)]
Base64 = Annotated[str, Field(pattern=r"^[A-Za-z0-9+/]*={0,2}$")]


Json = dict[str, Any]
"""Came out of `json.loads`, so it holds nothing but JSON; the tools read it with models of their own."""


class _Reply(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class _Output(_Reply):
    """An output as the warden kept it: both ends, and how many bytes were dropped between them."""

    head: Base64
    tail: Base64
    cut: Count


class _Run(_Reply):
    exit_code: ExitCode | None
    timed_out: bool
    duration_s: Annotated[float, Field(ge=0, allow_inf_nan=False, strict=False)]
    output: _Output
    warm: bool
    cold: str | None


class _Exchange(_Reply):
    output: _Output
    message: Json | None
    interim: list[Json]
    timed_out: bool
    exit_code: ExitCode | None


class _Grep(_Reply):
    matches: list[Annotated[tuple[str, Count, str], Field(strict=False)]]
    more: bool


class _Facts(_Reply):
    root: str
    state: str
    environment: dict[str, str]
    python: str


_GitSide = Annotated[tuple[Literal["100644", "100755", "120000"], Base64], Field(strict=False)]
"""A file or a link as git sees it: its mode and its content."""

_FORMS: Mapping[str, Any] = {
    "configure": _Facts,
    "ping": dict[str, int],
    "run": _Run,
    "read": Base64,
    "read_real": Annotated[tuple[str, Base64], Field(strict=False)],
    "real_path": str,
    "walk": list[Annotated[tuple[str, str, Count], Field(strict=False)]],
    "grep": _Grep,
    "snapshot": str,
    "changes": dict[str, Annotated[tuple[_GitSide | None, _GitSide | None], Field(strict=False)]],
    "session_open": str,
    "session_request": _Exchange,
    "session_wait_message": _Exchange,
    "tampering": list[str],
}


def check_reply(op: str, reply: object) -> Any:
    """The reply as it came. Raises SandboxError where it does not have the form of the operation's replies."""
    try:
        _adapter(op).validate_python(reply)
    except ValidationError as error:
        raise SandboxError(f"the sandbox answered {op} with something else: {error.errors()[0]['msg']}") from None
    return reply


@functools.cache
def _adapter(op: str) -> TypeAdapter[Any]:
    return TypeAdapter[Any](_FORMS[op] if op in _FORMS else type(None))


def text_of(output: Mapping[str, Any]) -> tuple[str, bool]:
    """The text of an output and whether its middle was cut out. Bytes that are not UTF-8 are replaced."""
    head = base64.b64decode(output["head"])
    tail = base64.b64decode(output["tail"])
    if not output["cut"]:
        return (head + tail).decode("utf-8", "replace"), False
    mark = f"\n[... {output['cut']} bytes cut ...]\n"
    return head.decode("utf-8", "replace") + mark + tail.decode("utf-8", "replace"), True

"""Starting a program on a terminal of this machine, and away from its keyrings.

Runs have many threads. A child that is forked from one of them may wait forever for a lock that another thread held
at that moment, so no Python runs in the child: `subprocess` forks, makes the session and starts the program in C. The
terminal is not a controlling one, so nothing is sent to the program when its host is killed and the terminal hangs up:
bwrap must not die of that halfway, between the two processes that it becomes. The warden ends at the end of input.
"""

from __future__ import annotations

import ctypes
import os
import platform
import subprocess
import threading
import tty
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from pexpect.fdpexpect import fdspawn
from pexpect.spawnbase import SpawnBase

from gumshoe.errors import SandboxError

__all__ = ["ChildProcess", "with_own_session_keyring"]

READ_BYTES = 1 << 16
KEYCTL = {"x86_64": 250, "aarch64": 219}
JOIN_SESSION_KEYRING = 1

Result = TypeVar("Result")


class ChildProcess:
    """The common part of sandboxes whose warden is a child of this process: it has a session of its own."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._terminal: fdspawn[bytes] | None = None

    def start(self, argv: Sequence[str], environment: Mapping[str, str], files: Sequence[int] = ()) -> SpawnBase[bytes]:
        """Starts it on a raw terminal, and returns the host's end of that.

        Args:
            argv: the program, with its path, and its arguments.
            environment: its whole environment.
            files: descriptors that it inherits, by their numbers.

        Raises:
            SandboxError: it cannot be started.
        """
        try:
            self._process, self._terminal = _start(argv, environment, files)
        except OSError as error:
            raise SandboxError(f"the sandbox could not be started: {error}") from None
        return self._terminal

    def close(self) -> None:
        """Kills it, and with it everything that runs below it, and closes its terminal. Idempotent."""
        process, terminal = self._process, self._terminal
        self._process = self._terminal = None
        if process is not None and terminal is not None:
            process.kill()
            process.wait()
            terminal.close()


def _start(
    argv: Sequence[str], environment: Mapping[str, str], files: Sequence[int]
) -> tuple[subprocess.Popen[bytes], fdspawn[bytes]]:
    """The process and the host's end of its terminal. Raises OSError."""
    master, slave = os.openpty()
    try:
        tty.setraw(slave)
        process = subprocess.Popen(
            list(argv),
            env=dict(environment),
            stdin=slave,
            stdout=slave,
            stderr=slave,
            pass_fds=tuple(files),
            start_new_session=True,
        )
    except BaseException:
        os.close(master)
        raise
    finally:
        os.close(slave)
    return process, fdspawn(master, timeout=None, maxread=READ_BYTES, use_poll=True)


def with_own_session_keyring(start: Callable[[], Result]) -> Result:
    """Calls `start` where the session keyring is a new, empty one, which what it starts inherits.

    A session keyring belongs to a thread, so `start` runs in a thread of its own and this one keeps its keyring. On a
    kernel without keyrings there is nothing to keep.
    """
    results: list[Result] = []
    errors: list[BaseException] = []

    def work() -> None:
        number = KEYCTL.get(platform.machine())
        if number is not None:
            ctypes.CDLL(None).syscall(number, JOIN_SESSION_KEYRING, None)
        try:
            results.append(start())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=work, name="gumshoe-keyring")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]

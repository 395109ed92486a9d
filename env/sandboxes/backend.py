"""What a backend has to know: how to start a warden, and what the programs there may use; and what backends share."""

from __future__ import annotations

import os
import subprocess
import tty
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pexpect.fdpexpect import fdspawn
from pexpect.spawnbase import SpawnBase

from gumshoe.errors import SandboxError

HOME, TEMPORARY, STATE, SHARED_MEMORY = "/home/gumshoe", "/tmp", "/gumshoe", "/dev/shm"  # noqa: S108 - inside
SHARED_MEMORY_MB = 64
READ_BYTES = 1 << 16
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PROGRAM_ENVIRONMENT = {
    "LANG": "C.UTF-8",
    "TERM": "dumb",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "safe.directory",
    "GIT_CONFIG_VALUE_0": "*",
}
"""Variables of the programs in every sandbox.

Bytecode is not written: a file that is changed twice within a second without changing its size would be run as it was
before. Hashes are fixed, so that a program that is run again prints its sets in the same order.
Git takes the repository although its files belong to another user.
"""


@dataclass(frozen=True)
class SandboxLayout:
    """Where things are in a sandbox, and which limits hold there.

    Attributes:
        root: the workspace, absolute.
        state: a folder beside it for injected modules and snapshots.
        python: the interpreter that runs the warden and the injected modules.
        environment: variables set for every program.
        limits: names from the `resource` module to their values.
        disposable: a folder that the warden makes, and removes at the end, even when the host has died.
        folders: more folders that the warden makes.
        disk: bytes that may be written in all, watched where the file system has no limit of its own.
        patch_limit: the most bytes of changed files that are reported.
        user: user and group that the warden becomes, when it starts as root and programs must not be.
    """

    root: str
    state: str
    python: str
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    limits: Mapping[str, int] = field(default_factory=dict[str, int])
    disposable: str | None = None
    folders: Sequence[str] = ()
    user: tuple[int, int] | None = None
    disk: int | None = None
    patch_limit: int | None = None


class Backend(Protocol):
    """A kind of sandbox, started once.

    Attributes:
        isolated: what runs there cannot reach the host's files, processes and network.
        image_digest: of the image that a container is made from, known once it is connected; None without one.
    """

    name: str
    isolated: bool
    image_digest: str | None
    layout: SandboxLayout

    def connect(self, argv: Sequence[str]) -> SpawnBase[bytes]:
        """Starts a program in the sandbox on a terminal of its own. Raises SandboxError."""
        ...

    def close(self) -> None:
        """Removes everything, running programs included. Idempotent."""
        ...


def resource_limits(disk_mb: int, memory_mb: int | None = None) -> dict[str, int]:
    """Limits of each single process: of the files that it writes, and of its address space if that is given."""
    limits = {"RLIMIT_CORE": 0, "RLIMIT_FSIZE": disk_mb << 20}
    return limits if memory_mb is None else {**limits, "RLIMIT_AS": memory_mb << 20}


def program_environment(path: str, *, home: str, temporary: str) -> dict[str, str]:
    """The environment of programs in a sandbox without an image of its own."""
    return {"PATH": path, "HOME": home, "TMPDIR": temporary, **PROGRAM_ENVIRONMENT}


class ChildProcess:
    """The common part of backends whose warden is a child of this process: it has a session of its own.

    Runs have many threads. A child that is forked from one of them may wait forever for a lock that another thread held
    at that moment, so no Python runs in the child: `subprocess` forks, makes the session and starts the program in C.
    The terminal is not a controlling one, so nothing is sent to the program when its host is killed and the terminal
    hangs up: bwrap must not die of that halfway, between the two processes that it becomes. The warden ends at the end
    of input.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._terminal: fdspawn[bytes] | None = None

    def start(self, argv: Sequence[str], environment: Mapping[str, str], files: Sequence[int] = ()) -> SpawnBase[bytes]:
        """Starts a program on a raw terminal with just this environment and these open files, by their numbers.

        Returns the host's end of the terminal. Raises SandboxError where it cannot be started.
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

"""The bubblewrap sandbox: Linux namespaces without a daemon.

What it does: programs see the system's folders, this Python with its standard library and the distributions that the
config names, all read-only; a workspace and temporary folders in memory that end with the sandbox; no network but their
own loopback, no process of the host, none of its environment and an empty keyring. A filter refuses the system calls
that tests have no use for (`host/seccomp.py`). The warden is process 1 in there: programs cannot kill it, and
all of them end with it. They have no capabilities and cannot get any. A host user who is root is not root in there:
programs run as a user that exists nowhere else.

What it does not do: limit the memory and the processors of all programs together. Memory is limited for each process,
the number of processes for the sandbox.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

from pexpect.spawnbase import SpawnBase

from gumshoe.env.config import SandboxConfig
from gumshoe.env.sandboxes.backend import (
    HOME,
    SHARED_MEMORY,
    SHARED_MEMORY_MB,
    STATE,
    SYSTEM_PATH,
    TEMPORARY,
    ChildProcess,
    SandboxLayout,
    program_environment,
    resource_limits,
)
from gumshoe.env.sandboxes.host.bwrap import (
    SYSTEM_FOLDERS,
    file_in_memory,
    filtered_calls,
    find_bwrap,
    guest_user,
    namespace_options,
    parents,
    system_mounts,
)
from gumshoe.env.sandboxes.host.python_mounts import carried_packages, python_mounts
from gumshoe.env.virtualenvs import INSIDE, find_environment

KEYCTL = {"x86_64": 250, "aarch64": 219}
JOIN_SESSION_KEYRING = 1

Result = TypeVar("Result")


class BubblewrapBackend(ChildProcess):
    """Runs programs in namespaces of their own, made by `bwrap`."""

    name = "bubblewrap"
    isolated = True
    image_digest: str | None = None

    def __init__(self, config: SandboxConfig, workdir: str, environment: str | None = None) -> None:
        super().__init__()
        self._environment = None if environment is None else find_environment(environment)
        self._config = config
        self._workdir = workdir
        as_root = os.geteuid() == 0
        user = guest_user()
        self._accounts = _accounts(user)
        path = f"{Path(sys.executable).parent}:{SYSTEM_PATH}"
        self.layout = SandboxLayout(
            patch_limit=config.patch_mb << 20,
            root=workdir,
            state=f"{STATE}/state",
            python=sys.executable,
            environment={**program_environment(path, home=HOME, temporary=TEMPORARY), "USER": "gumshoe", **config.env},
            limits={**resource_limits(config.disk_mb, config.memory_mb), "RLIMIT_NPROC": config.pids},
            user=(user, user) if as_root else None,
        )

    def connect(self, argv: Sequence[str]) -> SpawnBase[bytes]:
        """Starts a program as process 1 of a new sandbox."""
        with ExitStack() as open_files:
            accounts = {
                path: open_files.enter_context(file_in_memory(text.encode())) for path, text in self._accounts.items()
            }
            # `--die-with-parent` is left out on purpose: to the kernel the parent is the thread that started the
            # sandbox, and sandboxes outlive threads. The warden ends when its terminal does, which holds for threads
            # and for killed hosts.
            options = [find_bwrap().path, *namespace_options(self.layout.user is not None), "--as-pid-1"]
            options += self._mounts(accounts)
            filtering, filters = open_files.enter_context(filtered_calls())
            inherited = [*accounts.values(), *filters]
            command = [*options, *filtering, "--chdir", "/", "--", *argv]
            return with_own_session_keyring(lambda: self.start(command, self.layout.environment, inherited))

    def _mounts(self, accounts: Mapping[str, int]) -> Iterator[str]:
        """The file system that the sandbox sees, from the root down; `accounts` are open files by path."""
        for folder in parents(["/etc/ssl/certs", HOME, self._workdir]):
            yield from ("--perms", "0755", "--dir", folder)
        yield from ("--proc", "/proc", "--dev", "/dev")
        yield from system_mounts()
        for path, file in accounts.items():
            yield from ("--perms", "0644", "--ro-bind-data", str(file), path)
        disk = self._config.disk_mb
        for folder, megabytes in (
            (self._workdir, disk),
            (TEMPORARY, disk),
            (STATE, disk),
            (HOME, max(16, disk // 4)),
            (SHARED_MEMORY, SHARED_MEMORY_MB),
        ):
            yield from ("--perms", "1777", "--size", str(megabytes << 20), "--tmpfs", folder)
        # Last, since a virtual environment may be below /tmp, which is a fresh one in the sandbox.
        homes = () if self._environment is None else (str(self._environment.python_home),)
        mounts = list(python_mounts(SYSTEM_FOLDERS, self._config.packages, homes))
        for folder in parents(path for _, path in mounts):
            yield from ("--perms", "0755", "--dir", folder)
        for kind, path in mounts:
            if kind == "bind":
                yield from ("--ro-bind", path, path)
            elif os.path.isfile(path):  # noqa: PTH113
                yield from ("--ro-bind", "/dev/null", path)
            else:
                yield from ("--perms", "0755", "--tmpfs", path)
        for kind, path in mounts:
            if kind == "hide" and os.path.isdir(path):  # noqa: PTH112
                yield from ("--remount-ro", path)
        if self._environment is not None:
            root = self._environment.root
            yield from ("--ro-bind", str(root), INSIDE)
            for path in carried_packages(root):
                yield from ("--tmpfs", f"{INSIDE}{path.removeprefix(str(root))}")
        yield from ("--remount-ro", "/dev", "--remount-ro", "/")


def _accounts(user: int) -> dict[str, str]:
    """The few files of /etc that programs look names up in, by path."""
    return {
        "/etc/passwd": f"root:x:0:0:root:/:/usr/sbin/nologin\ngumshoe:x:{user}:{user}:gumshoe:{HOME}:/bin/sh\n",
        "/etc/group": f"root:x:0:\ngumshoe:x:{user}:\n",
        "/etc/hosts": "127.0.0.1 localhost gumshoe\n::1 localhost gumshoe\n",
    }


def with_own_session_keyring(start: Callable[[], Result]) -> Result:
    """Calls `start` where the session keyring is a new, empty one, which what it starts inherits.

    A session keyring belongs to a thread, so `start` runs in a thread of its own and this one keeps its keyring. On a
    kernel without keyrings there is nothing to keep.
    """

    def work() -> Result:
        number = KEYCTL.get(platform.machine())
        if number is not None:
            ctypes.CDLL(None).syscall(number, JOIN_SESSION_KEYRING, None)
        return start()

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(work).result()

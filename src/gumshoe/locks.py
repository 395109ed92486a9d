"""Folders that one process at a time works in. A lock ends with its process, however that ends."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from gumshoe.errors import ConfigError

__all__ = ["in_turn", "is_locked", "take_lock"]

LOCK = ".lock"
PATIENCE_S = 0.5


def take_lock(folder: Path) -> IO[bytes]:
    """The folder's lock, held until the file that is returned is closed.

    A process killed while it starts a program leaves a child that holds the lock for a moment: that long it waits.
    Raises ConfigError, with the holder's process id, where another process has the lock.
    """
    file = (folder / LOCK).open("a+b")
    deadline = time.monotonic() + PATIENCE_S
    while not _locked(file):
        if time.monotonic() < deadline:
            time.sleep(0.1)
            continue
        file.seek(0)
        holder = file.read().decode(errors="replace").strip()
        file.close()
        raise ConfigError(f"process {holder or '?'} is using the folder {folder}: wait for it, or stop it") from None
    file.truncate(0)
    file.write(f"{os.getpid()}\n".encode())
    file.flush()
    return file


def is_locked(folder: Path) -> bool:
    """Whether a process works in the folder now."""
    try:
        with (folder / LOCK).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


@contextmanager
def in_turn(folder: Path) -> Generator[None]:
    """One thread of one process at a time: the others wait. OSError: the folder cannot be written."""
    with (folder / LOCK).open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _locked(file: IO[bytes]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True

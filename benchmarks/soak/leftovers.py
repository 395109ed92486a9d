"""What a killed run has left: trajectories in its folder; processes and containers on this machine."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from tests.support.sandboxes.processes import descendants

PR_SET_CHILD_SUBREAPER = 36
GONE_S = 60.0
"""Seconds after which everything that a killed run started must be gone. A daemon on a busy machine is not quick."""


def adopt_orphans() -> None:
    """Makes every orphan a child of this process, so that none of them hides."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def finished(run: Path) -> int:
    """How many trajectories a run folder holds."""
    path = run / "trajectories.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def processes_left() -> list[str]:
    """What is still running after a while, each as its number and command line."""
    deadline = time.monotonic() + GONE_S
    while (left := descendants(os.getpid())) and time.monotonic() < deadline:
        _reap()
        time.sleep(0.1)
    return [f"{pid} {_command(pid)}" for pid in left]


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:200]
    except OSError:
        return ""


def _reap() -> None:
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

"""Runs one program and takes it down, with all it started, when the process that asked for it is gone.

    python -I guardian.py PROGRAM ARGUMENT ...

The parent keeps a pipe on our standard input open for as long as it wants the program. A parent that is killed
closes it without a word, which a signal handler or `atexit` could never promise. Standard library only: the process
lives as long as the server and is to start at once and stay small.

Not covered: a program that leaves its process group outlives us, as does everything if we are ourselves killed with
SIGKILL on a system without `PR_SET_PDEATHSIG` (that is, not Linux).
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from types import FrameType

GRACE_S = 5.0
_PR_SET_PDEATHSIG = 1


def main(argv: list[str]) -> int:
    """Runs `argv` until it ends or standard input is closed; returns its exit code, 128 + signal if killed."""
    wakeup, notify = os.pipe()
    os.set_blocking(notify, False)
    signal.set_wakeup_fd(notify, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, _ignore)
    stopping = _Flag()
    signal.signal(signal.SIGTERM, stopping.set)
    signal.signal(signal.SIGINT, stopping.set)
    try:
        program = subprocess.Popen(argv, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=_die_with_us)
    except OSError as error:
        print(f"{argv[0]} cannot be started: {error}", file=sys.stderr)
        return 127
    while program.poll() is None and not stopping.on:
        readable, _, _ = select.select([wakeup, 0], [], [])
        if wakeup in readable:
            os.read(wakeup, 4096)
        if 0 in readable and not os.read(0, 4096):
            break
    code = _take_down(program)
    return code if code >= 0 else 128 - code


class _Flag:
    """Remembers that a signal came."""

    on = False

    def set(self, signum: int, frame: FrameType | None) -> None:
        self.on = True


def _ignore(signum: int, frame: FrameType | None) -> None:
    """A handler, so that SIGCHLD writes to the wake-up pipe."""


def _take_down(program: subprocess.Popen[bytes]) -> int:
    """Ends the program's process group, gently first, and returns the program's exit code."""
    _signal_group(program.pid, signal.SIGTERM)
    deadline = time.monotonic() + GRACE_S
    while program.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    _signal_group(program.pid, signal.SIGKILL)
    return program.wait()


def _signal_group(leader: int, signum: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signum)


def _die_with_us() -> None:
    """Runs in the program's process before the program begins: has Linux kill it if we are killed ourselves."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Waits for forked children, and ends them. Standard library only, Python 3.6 to 3.14."""

import contextlib
import os
import signal
import time

POLL_S = 0.002


def wait(pid, end):
    """The wait status of a child; None if it is still running at the time `end`."""
    while time.time() < end:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return status
        time.sleep(POLL_S)
    return None


def kill(pid):
    """Kills a child and all that is in its process group."""
    for how in (os.killpg, os.kill):
        with contextlib.suppress(OSError):
            how(pid, signal.SIGKILL)


def exit_code(status):
    """The exit code that a wait status stands for, as a shell reports it."""
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)

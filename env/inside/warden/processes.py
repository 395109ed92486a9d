"""Waiting for programs, killing all of them, and the exit codes that are reported."""

import errno
import fcntl
import os
import select
import signal
import time

from . import system
from .disk import INTERVAL_S

CHUNK = 1 << 16
CLOSED = -1
GRACE_S = 5.0
KILLED = 128 + signal.SIGKILL


class HostGone(Exception):
    """The host went away in the middle of an exchange."""


class Cancelled(Exception):
    """The host no longer waits for the answer: it has sent its next request."""


def wake_on_child():
    """A descriptor that becomes readable whenever a child of this process has ended."""
    wake, wake_end = os.pipe()
    set_nonblocking(wake)
    set_nonblocking(wake_end)
    signal.set_wakeup_fd(wake_end)
    signal.signal(signal.SIGCHLD, _wake_up)
    return wake, wake_end


def _wake_up(_number, _frame):
    """Only there so that SIGCHLD reaches the wake-up descriptor."""


def wait_readable(readers, deadline, writers=(), watch=None):
    """Waits until one of the descriptors is ready; returns those that are, nothing once the deadline has passed.

    A `watch` looks at the disk meanwhile, once a second. Raises its DiskFull.
    """
    while True:
        remaining = None if deadline is None else max(0.0, deadline - time.monotonic())
        pause = remaining if watch is None else min(INTERVAL_S, INTERVAL_S if remaining is None else remaining)
        readable, writable, _ = select.select(readers, writers, [], pause)
        if readable or writable or pause == remaining:
            return readable + writable
        watch.check()


def kill_descendants(spare=()):
    """Kills every descendant of this process but those in `spare` and what is below them, however fast they multiply.

    A stopped process cannot fork, so they are all stopped before the first is killed.
    """
    me = os.getpid()
    while True:
        stopped = set()
        while True:
            fresh = system.descendants(me, spare) - stopped
            if not fresh:
                break
            for pid in fresh:
                send_signal(pid, signal.SIGSTOP)
            stopped |= fresh
        for pid in stopped:
            send_signal(pid, signal.SIGKILL)
        if not _reap_all(stopped, me, spare):
            return


def _reap_all(doomed, me, spare):
    """Waits for the doomed to die. True when others have turned up meanwhile."""
    while True:
        left = system.descendants(me, spare)
        if left - doomed:
            return True
        mine = left.intersection(system.children(me))
        if not mine:
            return False
        for pid in mine:
            os.waitpid(pid, 0)


def send_signal(pid, number):
    """Signals a process that may be gone already."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def drain(descriptor):
    """Reads what a non-blocking descriptor holds and forgets it."""
    try:
        while os.read(descriptor, CHUNK):
            continue
    except OSError as error:
        if error.errno != errno.EAGAIN:
            raise


def set_nonblocking(descriptor):
    """Makes reading and writing return at once."""
    flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
    fcntl.fcntl(descriptor, fcntl.F_SETFL, flags | os.O_NONBLOCK)


def exit_code_of(status):
    """The exit code as a shell reports it, from what `waitpid` returned."""
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def childless():
    """Whether this process has no children, dead ones included."""
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return True
    return False

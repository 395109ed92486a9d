"""Processes: the few system calls that Python does not offer, waiting for programs, and killing all of them.

The system calls are made on a best-effort basis: they return False if they cannot be made.
"""

import errno
import fcntl
import os
import select
import signal
import termios
import time
from contextlib import suppress

# From <sys/prctl.h>.
PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36
CHUNK = 1 << 16
"""Bytes that are read at once."""
CLOSED = -1
"""Stands for a descriptor that has been closed."""
GRACE_S = 5.0
"""How long a process that was told to end may take."""
PAUSE_S = 0.005
"""How long is waited between two looks at a process that is to end."""
DISK_INTERVAL_S = 1.0
"""How long is waited at least between two looks at the disk."""
KILLED = 128 + signal.SIGKILL
"""The exit code, as a shell reports it, of a program that was killed."""


def _load_prctl():
    try:
        import ctypes

        return ctypes.CDLL(None, use_errno=True).prctl
    except (ImportError, OSError, AttributeError):
        return None


_prctl = _load_prctl()


def prctl(option, value):
    """Calls Linux's prctl; False where it fails or does not exist."""
    return _prctl is not None and _prctl(option, value, 0, 0, 0) == 0


def adopt_orphans():
    """Makes this process the parent of descendants whose own parent has died."""
    return prctl(PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(signal_number):
    """Has the kernel send this process a signal when its parent dies."""
    return prctl(PR_SET_PDEATHSIG, signal_number)


def hide_memory():
    """Keeps processes of the same user from tracing this one or reading its memory."""
    return prctl(PR_SET_DUMPABLE, 0)


def show_memory():
    """Takes back what `hide_memory` did, for a fork."""
    return prctl(PR_SET_DUMPABLE, 1)


def keep_for_itself(terminal):
    """Keeps other programs from opening this process's terminal, by whatever name. (Privileged ones still can.)"""
    with suppress(OSError):
        fcntl.ioctl(terminal, termios.TIOCEXCL)


def become(uid, gid):
    """Gives up root for good; a second call has nothing left to do."""
    if os.getresuid() == (uid, uid, uid):
        return
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    hide_memory()


def offer_to_oom_killer():
    """Asks the kernel to pick this process, and those it forks, first when memory runs out. Call it before
    `hide_memory`, which takes away the right to do it.
    """
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as stream:
        stream.write("500")


def processes():
    """The ids of all processes that can be seen."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def children(pid):
    """The process ids of the living and dead children of `pid`; empty where /proc does not tell."""
    if _lists_children:
        return _listed_children(pid)
    return _parents().get(pid, [])


def descendants(pid, spare=()):
    """Every process below `pid`, without those in `spare` and what is below them."""
    table = None if _lists_children else _parents()
    found = set()
    waiting = [pid]
    while waiting:
        parent = waiting.pop()
        for child in _listed_children(parent) if table is None else table.get(parent, ()):
            if child not in found and child not in spare:
                found.add(child)
                waiting.append(child)
    return found


def _listed_children(pid):
    found = []
    folder = "/proc/{}/task".format(pid)
    try:
        threads = os.listdir(folder)
    except OSError:
        return found
    for thread in threads:
        try:
            with open("{}/{}/children".format(folder, thread)) as stream:
                found.extend(int(word) for word in stream.read().split())
        except OSError:
            continue
    return found


def _parents():
    """Each process with its children, from all of /proc: for kernels that keep no lists of children."""
    table = {}
    for pid in processes() if os.path.isdir("/proc") else ():
        try:
            with open("/proc/{}/stat".format(pid), "rb") as stream:
                fields = stream.read().rpartition(b")")[2].split()
        except OSError:
            continue
        table.setdefault(int(fields[1]), []).append(pid)
    return table


_lists_children = os.path.exists("/proc/self/task/{}/children".format(os.getpid()))


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


def wait_ready(readers, deadline, writers=(), watch=None):
    """Waits until one of the descriptors is ready; returns those that are, nothing once the deadline has passed.

    A `watch` looks at the disk meanwhile, once a second. Raises its DiskFull.
    """
    while True:
        remaining = None if deadline is None else max(0.0, deadline - time.monotonic())
        pause = (
            remaining if watch is None else min(DISK_INTERVAL_S, DISK_INTERVAL_S if remaining is None else remaining)
        )
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
            fresh = descendants(me, spare) - stopped
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
        left = descendants(me, spare)
        if left - doomed:
            return True
        mine = left.intersection(children(me))
        if not mine:
            return False
        for pid in mine:
            os.waitpid(pid, 0)


def wait_until_gone(pid):
    """Waits until a killed process, which its parent need not reap, has ended; at most for the time of grace."""
    deadline = time.monotonic() + GRACE_S
    while os.path.exists("/proc/{}".format(pid)) and time.monotonic() < deadline:
        time.sleep(PAUSE_S)


def send_signal(pid, number):
    """Signals a process that may be gone already."""
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


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

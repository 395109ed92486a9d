"""The few system calls that Python does not offer, each on a best-effort basis: False if it cannot be done."""

import fcntl
import os
import termios

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36


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
    try:
        fcntl.ioctl(terminal, termios.TIOCEXCL)
    except OSError:
        return False
    return True


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
    try:
        with open("/proc/self/oom_score_adj", "w") as stream:
            stream.write("500")
    except OSError:
        return False
    return True


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

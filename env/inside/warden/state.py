"""What programs can leave behind in a sandbox: found and removed."""

import os
import re
import stat

from . import system
from .files import delete

IPC_TABLES = ("/proc/sysvipc/shm", "/proc/sysvipc/sem", "/proc/sysvipc/msg")
QUEUES = "/dev/mqueue"
STATUS = ("Umask:", "Uid:", "Gid:", "Cpus_allowed:", "Mems_allowed:")
# Priority, niceness, real-time priority and policy in /proc/PID/stat, counted from the state.
SCHEDULING = (15, 16, 37, 38)


def inspect(folders, since, root="/", spare=()):
    """The state of a sandbox as plain data: equal for two moments between which nothing was left behind.

    It covers processes with their limits and scheduling, mounts, System V and POSIX message objects, names, kinds and
    modes of all that is in the folders, and what has changed elsewhere on the root's own file system since a moment
    (whatever was written, made, removed or given other permissions there carries a later time of change, which programs
    cannot set). What is mounted read-only cannot change and is not looked into; processes in `spare` are left out.
    """
    mounted = mounts()
    return {
        "mounts": sorted(mounted.items()),
        "elsewhere": sorted(_changed_since(since, root)),
        "processes": {pid: _facts(pid) for pid in sorted(set(system.processes()).difference(spare))},
        "oom_score_adj": _read("/proc/self/oom_score_adj"),
        "ipc": [_read(path) for path in IPC_TABLES],
        "queues": sorted(os.listdir(QUEUES)) if os.path.isdir(QUEUES) else [],
        "folders": {folder: _listing(folder, mounted) for folder in folders},
    }


def _facts(pid):
    """Identity, scheduling and limits of a process: nothing that changes while it does its work."""
    status = [line for line in _read("/proc/{}/status".format(pid)).splitlines() if line.startswith(STATUS)]
    scheduling = _read("/proc/{}/stat".format(pid)).rpartition(")")[2].split()
    lasting = [scheduling[field] for field in SCHEDULING if field < len(scheduling)]
    return [status, lasting, _read("/proc/{}/limits".format(pid))]


def empty(folder, mounted=None):
    """Removes everything in a folder, except mount points, the folders that lead to them, and what is read-only."""
    mounted = mounts() if mounted is None else mounted
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if mounted.get(path) == "ro":
            continue
        if path in mounted or any(point.startswith(path + "/") for point in mounted):
            empty(path, mounted)
        else:
            delete(path)


def mounts(table="/proc/self/mountinfo"):
    """Every mount point with `ro` or `rw`."""
    found = {}
    with open(table, "rb") as lines:
        for line in lines:
            fields = line.split()
            point = re.sub(rb"\\([0-7]{3})", lambda code: bytes([int(code.group(1), 8)]), fields[4])
            found[os.fsdecode(point)] = "ro" if b"ro" in fields[5].split(b",") else "rw"
    return found


def _changed_since(since, root):
    """(path, time of change) of what has changed on the root's file system; nothing can on a read-only one."""
    if os.statvfs(root).f_flag & os.ST_RDONLY:
        return
    device = os.lstat(root).st_dev
    waiting = [root]
    while waiting:
        folder = waiting.pop()
        with os.scandir(folder) as listing:
            for entry in listing:
                found = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(found.st_mode):
                    if found.st_dev != device:
                        continue
                    waiting.append(entry.path)
                if found.st_ctime >= since:
                    yield entry.path, found.st_ctime_ns


def _listing(folder, mounted):
    """(path, kind and permissions) of a folder and everything below it."""
    found = [("", os.lstat(folder).st_mode)]
    waiting = [folder]
    while waiting:
        with os.scandir(waiting.pop()) as listing:
            for entry in listing:
                mode = entry.stat(follow_symlinks=False).st_mode
                found.append((os.path.relpath(entry.path, folder), mode))
                if stat.S_ISDIR(mode) and mounted.get(entry.path) != "ro":
                    waiting.append(entry.path)
    return sorted(found)


def _read(path):
    try:
        with open(path) as stream:
            return stream.read()
    except OSError:
        return ""

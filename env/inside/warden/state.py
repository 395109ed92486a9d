"""What programs leave behind in a sandbox: found and removed; and what they did to the harness there."""

import glob
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
IMPORTABLE = (".py", ".pyc", ".so", ".pth", ".zip")
RUNNERS = ("pytest", "_pytest", "pluggy", "iniconfig", "unittest")
SHOWN, SHOWN_CHARS = 5, 200


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


class Tampering:
    """Facts about one episode, gathered from `begin` on.

    Args:
        me: the process id of the warden.
    """

    def __init__(self, me):
        self._me = me
        self._since = None
        self._modules = set()

    def begin(self, now):
        """From this moment (seconds since the epoch) on, changes count."""
        self._since = now

    def note_modules(self, changed):
        """Notes which files in the folder of our modules were not as they should be, by name.

        Outcomes and the like are written there by the programs themselves and do not count.
        """
        if self._since is not None:
            self._modules.update(name for name in changed if name.endswith(IMPORTABLE))

    def facts(self, launcher, sessions, python, environment):
        """Short texts, at most one of a kind.

        `launcher` is the process id of the launcher, `sessions` a list of (supervisor, program, whether the program
        is one of our modules), `python` the interpreter whose files are looked at, None for none.
        """
        found = {
            "processes left running": left_running(self._me, launcher, sessions),
            "injected modules changed": sorted(self._modules),
            "startup or test runner files changed": changed(import_folders(python, environment), self._since),
        }
        return ["{}: {}".format(what, _shown(items)) for what, items in found.items() if items]


def _shown(items):
    more = " and {} more".format(len(items) - SHOWN) if len(items) > SHOWN else ""
    return ", ".join(item[:SHOWN_CHARS] for item in items[:SHOWN]) + more


def left_running(me, launcher, sessions):
    """The command lines of processes that run on by themselves: what has lost its parent, and what a shell has put
    in the background. Our debugger forks on purpose; what a program under it has started counts once it is an orphan.
    """
    expected = {launcher}
    parents = {me}
    for supervisor, program, ours in sessions:
        expected.update((supervisor, program))
        parents.update((supervisor,) if ours else (supervisor, program))
    left = {child for parent in parents for child in system.children(parent)} - expected
    return sorted(filter(None, map(_command, left)))


def _command(pid):
    """What a living process runs, in one line; None for a dead one."""
    try:
        with open("/proc/{}/stat".format(pid), "rb") as stream:
            head, _, rest = stream.read().rpartition(b")")
        with open("/proc/{}/cmdline".format(pid), "rb") as stream:
            line = stream.read(4096).replace(b"\0", b" ").strip() or head.partition(b"(")[2]
    except OSError:
        return None
    if rest.split()[0] in (b"Z", b"X"):
        return None
    text = " ".join(line.decode("utf-8", "replace").split())
    return "".join(each if each.isprintable() else "?" for each in text)


def import_folders(python, environment):
    """The folders that hold an interpreter's library, its site packages and the user's."""
    home = environment.get("HOME")
    patterns = [] if not home else [os.path.join(home, ".local/lib/python3*/site-packages")]
    located = _located(python, environment.get("PATH", "")) if python else None
    if located is not None:
        patterns.append("/usr/lib/python3/dist-packages")
        for program in (located, os.path.realpath(located)):
            for library in ("lib", "lib64"):
                folder = os.path.join(os.path.dirname(os.path.dirname(program)), library, "python3*")
                patterns += [folder, os.path.join(folder, "site-packages"), os.path.join(folder, "dist-packages")]
    return sorted({os.path.realpath(folder) for pattern in patterns for folder in glob.glob(pattern)})


def _located(program, path):
    if "/" in program:
        return program
    places = (os.path.join(folder, program) for folder in path.split(":") if folder)
    return next((place for place in places if os.access(place, os.X_OK)), None)


def changed(folders, since):
    """The files in these folders that Python runs at its start or that belong to a test runner, and that were written
    since a moment. The time of change of a file cannot be set by programs.
    """
    found = []
    for folder in folders if since is not None else ():
        try:
            if not os.statvfs(folder).f_flag & os.ST_RDONLY:
                found.extend(_changed_in(folder, since, top=True))
        except OSError:
            continue
    return sorted(found)


def _changed_in(folder, since, top):
    with os.scandir(folder) as listing:
        entries = list(listing)
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            wanted = entry.name in RUNNERS if top else entry.name != "__pycache__"
            if wanted:
                for path in _changed_in(entry.path, since, top=False):
                    yield path
        elif entry.name.endswith(IMPORTABLE) and _ctime(entry) >= since:
            yield entry.path


def _ctime(entry):
    try:
        return entry.stat(follow_symlinks=False).st_ctime
    except OSError:
        return 0.0

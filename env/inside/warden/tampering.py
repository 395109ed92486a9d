"""What programs did to the harness in a sandbox, and left running there."""

import glob
import os
import shutil

from . import system

IMPORTABLE = (".py", ".pyc", ".so", ".pth", ".zip")
RUNNERS = ("pytest", "_pytest", "pluggy", "iniconfig", "unittest")
SHOWN, SHOWN_CHARS = 5, 200


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

    def facts(self, launcher, jobs, python, environment):
        """Short texts, at most one of a kind.

        `launcher` is the process id of the launcher, `jobs` are the programs that the host knows of, `python` is the
        interpreter whose files are looked at, None for none.
        """
        found = {
            "processes left running": left_running(self._me, launcher, jobs),
            "injected modules changed": sorted(self._modules),
            "startup or test runner files changed": changed(import_folders(python, environment), self._since),
        }
        return ["{}: {}".format(what, _shown(items)) for what, items in found.items() if items]


def _shown(items):
    more = " and {} more".format(len(items) - SHOWN) if len(items) > SHOWN else ""
    return ", ".join(item[:SHOWN_CHARS] for item in items[:SHOWN]) + more


def left_running(me, launcher, jobs):
    """The command lines of processes that run on by themselves: what has lost its parent, and what a shell has put
    in the background. Our debugger forks on purpose; what a program under it has started counts once it is an orphan.
    """
    expected = {launcher}
    parents = {me}
    for job in jobs:
        expected.update((job.supervisor, job.pid))
        parents.update((job.supervisor,) if job.is_ours else (job.supervisor, job.pid))
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
    located = shutil.which(python, path=environment.get("PATH", "")) if python else None
    if located is not None:
        patterns.append("/usr/lib/python3/dist-packages")
        for program in (located, os.path.realpath(located)):
            for library in ("lib", "lib64"):
                folder = os.path.join(os.path.dirname(os.path.dirname(program)), library, "python3*")
                patterns += [folder, os.path.join(folder, "site-packages"), os.path.join(folder, "dist-packages")]
    return sorted({os.path.realpath(folder) for pattern in patterns for folder in glob.glob(pattern)})


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

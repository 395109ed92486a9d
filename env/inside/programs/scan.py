"""Finds what in a workspace makes a fork of a running interpreter differ from a fresh one.

Standard library only, Python 3.6 to 3.14.
"""

import os
import re
import stat

from .project import FOREIGN

MOST_FILES = 20000
FILE_BYTES = 1 << 20

_PATTERNS = {
    "starts processes that share its memory": re.compile(
        rb"\bos\.fork|\bforkpty\b|\bmultiprocessing\b|\bProcessPoolExecutor\b"
    ),
    "looks at its own process": re.compile(
        rb"/proc/self|\bpsutil\b|\btracemalloc\b|\bgetrusage\b|\bgc\.get_|\borig_argv\b"
    ),
}


class Scan:
    """What was found in the workspace's files; those that have changed are read again by `look`."""

    def __init__(self, root):
        self.root = root
        self._files = {}
        self._importable = set()
        self._too_many = False
        self.look()

    def look(self):
        """Reads the files that are new or changed since the last time."""
        known, self._files, self._importable = self._files, {}, set()
        packages = set()
        for folder, folders, names in os.walk(self.root):
            folders[:] = [each for each in folders if each not in FOREIGN and not each.startswith(".")]
            modules = {name.partition(".")[0] for name in names if name.endswith((".py", ".so"))}
            if "__init__" in modules:
                packages.add(folder)
                modules = set() if os.path.dirname(folder) in packages else {os.path.basename(folder)}
            self._importable |= modules
            for name in names:
                if name.endswith(".py"):
                    path = os.path.join(folder, name)
                    self._files[path] = _look_at(path, known.get(path))
            self._too_many = len(self._files) > MOST_FILES
            if self._too_many:
                return

    def reason(self):
        """Why a fork may differ; None if nothing suggests that it does."""
        if self._too_many:
            return "the workspace has over {} modules".format(MOST_FILES)
        for path, (_, why) in self._files.items():
            if why is not None:
                return "{} {}".format(os.path.relpath(path, self.root), why)
        return None

    def shadowed(self, names):
        """Why modules of these names could be different ones in a fresh interpreter, or None."""
        own = sorted(self._importable & names)
        return "the workspace has a module {} of its own".format(own[0]) if own else None


def _look_at(path, known):
    """(a stamp that changes with the file, why it matters)."""
    try:
        status = os.stat(path)
        stamp = status.st_mtime_ns, status.st_ctime_ns, status.st_size
        if known is not None and known[0] == stamp:
            return known
        if not stat.S_ISREG(status.st_mode):
            return stamp, None
        with open(path, "rb") as stream:
            source = stream.read(FILE_BYTES)
    except OSError:
        return None, None
    return stamp, next((why for why, pattern in _PATTERNS.items() if pattern.search(source)), None)

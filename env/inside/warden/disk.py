"""Watches disk usage, for sandboxes whose file system has no limit."""

import os
import stat
import time

from .system import DISK_INTERVAL_S

# Looking takes at most this share of the time.
SHARE = 0.05
# Time stamps of files come from a clock that lags behind by up to a tick of the kernel.
CLOCK_LAG_S = 0.05


class DiskFull(Exception):
    """The programs in the sandbox have written more than they may."""


class DiskWatch:
    """Adds up what has been written to the root's file system since the watch began.

    Only the sandbox's own files count: others may share the file system behind it, and fill or free space there.
    """

    def __init__(self, limit, root="/", clock=time.monotonic):
        self.limit = limit
        self._root = root
        self._clock = clock
        self._since = time.time() - CLOCK_LAG_S
        self._next = clock()

    def check(self):
        """Looks at the disk if it is time to. Raises DiskFull."""
        began = self._clock()
        if began < self._next:
            return
        written = written_since(self._since, self._root) + deleted_but_open(self._root)
        took = self._clock() - began
        self._next = began + took + max(DISK_INTERVAL_S, took * (1 / SHARE - 1))
        if written > self.limit:
            raise DiskFull("the sandbox wrote more than its {} MB of disk".format(self.limit >> 20))


def written_since(moment, root="/"):
    """Bytes on disk of the files on the root's own file system that have changed since `moment`, each counted once."""
    device = os.lstat(root).st_dev
    total = 0
    seen = set()
    folders = [root]
    while folders:
        try:
            with os.scandir(folders.pop()) as listing:
                entries = list(listing)
        except OSError:
            continue
        for entry in entries:
            try:
                found = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            if stat.S_ISDIR(found.st_mode):
                if found.st_dev == device:
                    folders.append(entry.path)
            elif stat.S_ISREG(found.st_mode) and found.st_ctime >= moment:
                if found.st_nlink > 1 and found.st_ino in seen:
                    continue
                seen.add(found.st_ino)
                total += found.st_blocks * 512
    return total


def deleted_but_open(root="/"):
    """Bytes on disk of files of the root's file system that no longer have a name and that programs still hold open."""
    device = os.lstat(root).st_dev
    sizes = {}
    me = os.getpid()
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if not name.isdigit() or int(name) == me:
            continue
        folder = "/proc/{}/fd".format(name)
        try:
            descriptors = os.listdir(folder)
        except OSError:
            continue
        for descriptor in descriptors:
            try:
                found = os.stat("{}/{}".format(folder, descriptor))
            except OSError:
                continue
            if found.st_nlink == 0 and found.st_dev == device and stat.S_ISREG(found.st_mode):
                sizes[found.st_ino] = found.st_blocks * 512
    return sum(sizes.values())

"""A watch over the disk, for sandboxes whose file system has no limit of its own."""

import os
import stat
import time

INTERVAL_S = 1.0
# So much less space is not looked into any further: deleted files that are still open are found nowhere.
SURELY = 3


class DiskFull(Exception):
    """The programs in the sandbox have written more than they may."""


class DiskWatch:
    """Compares the space that was left on the root's file system with what is left now.

    The file system may be shared with others, so before it raises it adds up the files that have changed since.
    """

    def __init__(self, limit, root="/"):
        self.limit = limit
        self._root = root
        self._since = time.time()
        self._free = self._left()

    def check(self):
        """Raises DiskFull."""
        used = self._free - self._left()
        if used <= self.limit:
            return
        written = written_since(self._since, self._root)
        if written > self.limit or used > SURELY * self.limit:
            raise DiskFull("the sandbox wrote more than its {} MB of disk".format(self.limit >> 20))
        self._free = self._left() + written

    def _left(self):
        left = os.statvfs(self._root)
        return left.f_bfree * left.f_frsize


def written_since(moment, root="/"):
    """Bytes on disk of the files on the root's own file system that have changed since `moment`."""
    device = os.lstat(root).st_dev
    total = 0
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
                total += found.st_blocks * 512
    return total

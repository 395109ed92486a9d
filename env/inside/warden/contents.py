"""Contents by their SHA-256, in a file without a name: programs in the sandbox can neither find nor change it."""

import errno
import hashlib
import os
import tempfile


class Contents:
    """A store that only grows. `limit` is how many bytes may be added after the first snapshot; None for no limit."""

    def __init__(self, folder, limit=None):
        self.limit = limit
        self.budget = None
        self._size = 0
        self._places = {}
        self._file = _nameless_file(folder)

    def keep(self, data):
        """Stores it unless it is known; returns its digest. Raises OSError ENOSPC beyond the limit."""
        digest = hashlib.sha256(data).hexdigest()
        if digest not in self._places:
            if self.budget is not None and self._size + len(data) > self.budget:
                raise OSError(errno.ENOSPC, "the snapshots exceed their size limit")
            view, at = memoryview(data), self._size
            while view:
                written = os.pwrite(self._file, view, at)
                view, at = view[written:], at + written
            self._places[digest] = (self._size, len(data))
            self._size += len(data)
        return digest

    def close_budget(self):
        """Starts counting: what has been stored so far is free."""
        if self.budget is None and self.limit is not None:
            self.budget = self._size + self.limit

    def read(self, digest):
        """The bytes with this digest. Raises KeyError."""
        offset, left = self._places[digest]
        pieces = []
        while left:
            piece = os.pread(self._file, left, offset)
            if not piece:
                raise OSError(errno.EIO, "the content of a snapshot is gone")
            pieces.append(piece)
            offset, left = offset + len(piece), left - len(piece)
        return b"".join(pieces)

    def close(self):
        """Forgets everything. Idempotent."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _nameless_file(folder):
    os.makedirs(folder, mode=0o700, exist_ok=True)
    try:
        return os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError:
        descriptor, path = tempfile.mkstemp(dir=folder)
        os.unlink(path)
        return descriptor

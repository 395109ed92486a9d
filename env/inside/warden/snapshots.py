"""Snapshots of the workspace: contents in a file that programs cannot reach, lists of paths in the warden's memory."""

import errno
import hashlib
import json
import os
import stat
import tempfile
import time

from .files import Ignore, delete, kind_of, make_accessible, read_regular, write_atomically


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


def _nameless_file(folder):
    os.makedirs(folder, mode=0o700, exist_ok=True)
    try:
        return os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError:
        descriptor, path = tempfile.mkstemp(dir=folder)
        os.unlink(path)
        return descriptor


CONTENT_LIMIT = 64 << 20
# A file that changed this shortly before it was looked at may change again without its time stamp telling: file systems
# with whole seconds only take up to two, the others take the time of the kernel's last tick, at most 10 ms ago.
RACY_NS, RACY_WHOLE_SECONDS_NS = 10**8, 2 * 10**9


class Facts:
    """What a snapshot notes of a path.

    Attributes:
        kind, mode: as `kind_of` says, and its permissions.
        target: what a link points at; None for others.
        digest: stands for the content of a file; None for others.
        size: of a file, in bytes.
        stamp: changes with a file: its inode, size, and times of change.
        settled: whether the file had not changed for so long that its stamp shows every later change.
    """

    __slots__ = ("digest", "kind", "mode", "settled", "size", "stamp", "target")

    def __init__(self, kind, mode, target=None, digest=None, size=0, stamp=None, settled=False):
        self.kind = kind
        self.mode = mode
        self.target = target
        self.digest = digest
        self.size = size
        self.stamp = stamp
        self.settled = settled

    def as_data(self):
        """All of it."""
        return [getattr(self, name) for name in self.__slots__]

    @property
    def git_mode(self):
        """Git's mode of a file or link."""
        if self.kind == "link":
            return "120000"
        return "100755" if self.mode & stat.S_IXUSR else "100644"

    def in_git(self):
        """What git would note: its mode, and what its content is known by; None for a folder."""
        return (self.git_mode, self.digest or self.target) if self.kind in ("file", "link") else None


class Snapshots:
    """Keeps the files below `files.root` in `folder`. Files above 64 MiB are noted, not kept.

    Folders and files whose permissions keep even their owner out are opened up, whatever a program has done to them.
    `limit` is how many bytes snapshots may take besides those of the first.
    """

    def __init__(self, files, folder, limit=None):
        self.files = files
        self._contents = Contents(folder, limit)
        self._lists = {}
        self._last = {}

    def take(self):
        """Keeps the files as they are and returns the snapshot's name."""
        entries = {relative: self._facts(entry, self._last.get(relative), True) for relative, entry in self._scan()}
        self._last = entries
        data = {relative: facts.as_data() for relative, facts in entries.items()}
        name = hashlib.sha256(json.dumps(data, sort_keys=True).encode("ascii")).hexdigest()
        self._lists[name] = entries
        self._contents.close_budget()
        return name

    def restore(self, name, only=None):
        """Puts every file back, modes and time stamps included, and removes what was not there.

        What is as it was is not touched. With `only`, an Ignore, no path is touched but those that it matches and
        the folders that lead to them.
        """
        entries = self._list(name)
        self._make_root()
        present = dict(self._scan())
        if only is not None:
            entries = {path: facts for path, facts in entries.items() if only.hides_below(path, facts.kind == "dir")}
            present = {
                path: entry for path, entry in present.items() if only.hides_below(path, kind_of(entry) == "dir")
            }
        self._remove_others(entries, present)
        for relative in sorted(entries):
            self._make_way(relative)
            self._put_back(relative, entries[relative], present.get(relative))

    def _remove_others(self, entries, present):
        """Removes what is not in the snapshot, or is of another kind there, from the file system and from `present`."""
        removed = None
        for relative in sorted(present, key=lambda path: path.split("/")):
            inside = removed is not None and relative.startswith(removed + "/")
            if inside:
                del present[relative]
            elif relative not in entries or entries[relative].kind != kind_of(present[relative]):
                delete(os.path.join(self.files.root, relative))
                del present[relative]
                removed = relative

    def changes(self, name, ignore, ignore_new, limit=None):
        """{path: (then, now)} of the files and links that differ for git: each its mode and the bytes of the file, or
        the target of the link; None for not there.

        What `ignore` matches is left out, and what `ignore_new` matches if it was not there. Raises OSError EFBIG when
        one content has more than 64 MiB, or all together more than `limit` bytes.
        """
        before = self._list(name)
        changed = _Bounded(limit)
        left = set()
        for relative, entry in self._scan(ignore):
            known = before.get(relative)
            if kind_of(entry) not in ("file", "link") or (known is None and ignore_new.hides_below(relative)):
                continue
            left.add(relative)
            now = self._facts(entry, known, False)
            if known is None or now.in_git() != known.in_git():
                changed.expect(relative, now.size)
                content = _read(entry.path) if now.kind == "file" else os.fsencode(now.target or "")
                changed.add(relative, self._git_side(known), (now.git_mode, content))
        for relative, known in before.items():
            if known.in_git() and relative not in left and not ignore.hides_below(relative):
                changed.add(relative, self._git_side(known), None)
        return changed.items

    def _git_side(self, known):
        """Mode and content of what was noted; None if it is neither a file nor a link."""
        if known is None or not known.in_git():
            return None
        return known.git_mode, self._content(known) if known.kind == "file" else os.fsencode(known.target)

    def _scan(self, ignore=None):
        """(relative path, entry) of everything below the root; nothing where the root is gone."""
        try:
            for found in self.files.scan(self.files.root, "", ignore or Ignore([]), force=True):
                yield found
        except (FileNotFoundError, NotADirectoryError):
            return

    def _facts(self, entry, known, keep):
        """The Facts of a path. `known` is what was noted before, if anything; `keep` stores the content."""
        found = entry.stat(follow_symlinks=False)
        kind = kind_of(entry)
        mode = stat.S_IMODE(found.st_mode)
        if kind == "link":
            return Facts(kind, mode, target=os.readlink(entry.path))
        if kind != "file":
            return Facts(kind, mode)
        stamp = [found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns]
        racy_ns = RACY_NS if found.st_ctime_ns % 10**9 else RACY_WHOLE_SECONDS_NS
        settled = time.time() * 10**9 - found.st_ctime_ns > racy_ns
        is_known = known is not None and known.settled and known.stamp == stamp
        digest = known.digest if is_known else self._digest(entry.path, stamp, keep)
        return Facts(kind, mode, digest=digest, size=found.st_size, stamp=stamp, settled=settled)

    def _digest(self, path, stamp, keep):
        if stamp[1] > CONTENT_LIMIT:
            return "large:" + ":".join(str(part) for part in stamp)
        data = _read(path)
        return self._contents.keep(data) if keep else hashlib.sha256(data).hexdigest()

    def _content(self, known):
        if known.digest.startswith("large:"):
            raise OSError(
                errno.EFBIG, "a file above {} bytes was changed; its content was not kept".format(CONTENT_LIMIT)
            )
        return self._contents.read(known.digest)

    def _list(self, name):
        if name not in self._lists:
            raise OSError(errno.ENOENT, "there is no such snapshot")
        return self._lists[name]

    def _make_root(self):
        root = self.files.root
        if os.path.islink(root) or (os.path.exists(root) and not os.path.isdir(root)):
            os.unlink(root)
        os.makedirs(root, exist_ok=True)

    def _make_way(self, relative):
        """Makes sure that the folders above a path are folders, not something that was put in their place."""
        folder = self.files.root
        for part in relative.split("/")[:-1]:
            folder = os.path.join(folder, part)
            _make_folder(folder)

    def _put_back(self, relative, facts, entry):
        path = os.path.join(self.files.root, relative)
        if facts.kind == "dir":
            _make_folder(path)
            _set_mode(path, facts.mode | stat.S_IRWXU)
        elif facts.kind == "link":
            if entry is None or os.readlink(path) != facts.target:
                delete(path)
                os.symlink(facts.target, path)
        elif facts.kind == "file":
            if entry is None or self._facts(entry, facts, False).digest != facts.digest:
                delete(path)
                write_atomically(path, self._content(facts), facts.mode)
            _set_mode(path, facts.mode)
            _set_time(path, facts.stamp[2])


class _Bounded:
    """Changed contents, up to a number of bytes in all."""

    def __init__(self, limit):
        self.items = {}
        self._limit = limit
        self._total = 0

    def expect(self, relative, size):
        """Raises OSError EFBIG when this many more bytes are too many."""
        if self._limit is not None and self._total + size > self._limit:
            text = "the files that were changed hold more than {} MB, {} among them".format(self._limit >> 20, relative)
            raise OSError(errno.EFBIG, text)

    def add(self, relative, before, after):
        size = sum(len(content) for _, content in filter(None, (before, after)))
        self.expect(relative, size)
        self._total += size
        self.items[relative] = (before, after)


def _read(path):
    """The bytes of a regular file, even of one whose owner may not read it."""
    try:
        return read_regular(path, CONTENT_LIMIT)
    except PermissionError:
        make_accessible(path, stat.S_IRUSR)
        return read_regular(path, CONTENT_LIMIT)


def _make_folder(path):
    """Makes a path a folder, not a link to one, that its owner may use."""
    if os.path.islink(path) or not os.path.isdir(path):
        delete(path)
        os.mkdir(path)
    make_accessible(path)


def _set_mode(path, mode):
    if stat.S_IMODE(os.lstat(path).st_mode) != mode:
        os.chmod(path, mode)


def _set_time(path, moment):
    if os.lstat(path).st_mtime_ns != moment:
        os.utime(path, ns=(moment, moment))

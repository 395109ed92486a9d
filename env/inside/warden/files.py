"""Reading, writing, listing and searching files below a root, without ever following a link out of it."""

import errno
import os
import re
import signal
import stat
from contextlib import suppress

READ_LIMIT = 64 << 20
PIECE = 1 << 16
TEXT_PIECE = 16 << 20
# What is deeper has no path that the kernel accepts, and is skipped.
PATH_LIMIT = 4000
LINE_LIMIT = 400
TIME_LIMIT_S = 20
# What has a different meaning when lines are searched one by one than when a whole text is.
LINE_BOUND = re.compile(r"\\[AZ]|\(\?|\r")


class Files:
    """The file operations of a sandbox. `root` is an absolute real path.

    With `inside`, a path that leads out of the root, symbolic links followed, is refused with EACCES.
    """

    def __init__(self, root):
        self.root = root

    def resolve(self, path, inside=True):
        """The real absolute path. Its end need not exist."""
        if "\0" in path:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        real = os.path.realpath(os.path.join(self.root, path))
        if inside and real != self.root and not real.startswith(self.root.rstrip("/") + "/"):
            raise PermissionError(errno.EACCES, "the path leads out of the workspace", path)
        return real

    def locate(self, path, inside=True):
        """Like `resolve`, but a link at the end of the path is itself, not what it points at."""
        parent, name = os.path.split(os.path.join(self.root, path).rstrip("/"))
        if name in ("", ".", ".."):
            return self.resolve(path, inside)
        return os.path.join(self.resolve(parent, inside), name)

    def real(self, path):
        """The path with its links followed, relative to the root."""
        return os.path.relpath(self.resolve(path), self.root)

    def read(self, path, inside=True):
        """The bytes of a regular file. Raises OSError; EFBIG above 64 MiB."""
        return read_regular(self.resolve(path, inside))

    def write(self, path, data, inside=True, mode=None, mtime=None):
        """Replaces or makes a file: written beside, then renamed. The mode of what was there is kept."""
        target = self.resolve(path, inside)
        if os.path.isdir(target):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        write_atomically(target, data, mode, mtime)

    def remove(self, path, inside=True):
        """Unlinks a file or a symbolic link."""
        os.unlink(self.locate(path, inside))

    def walk(self, path, ignore, depth=None):
        """Yields (path relative to the root, kind, size) of everything below `path`, sorted, links not followed."""
        base = self.resolve(path)
        for relative, entry in self.scan(base, self._relative(base), ignore, depth):
            yield relative, kind_of(entry), _size_of(entry)

    def scan(self, folder, prefix, ignore, depth=None, force=False):
        """Yields (relative path, os.DirEntry), depth first. What cannot be entered is skipped, except the top; with
        `force`, permissions that keep the owner out are changed.
        """
        levels = [(prefix, iter(_entries(folder, force)))]
        while levels:
            prefix, entries = levels[-1]
            entry = next(entries, None)
            if entry is None:
                levels.pop()
                continue
            relative = prefix + entry.name
            enterable = entry.is_dir(follow_symlinks=False)
            if ignore.hides(relative, enterable) or len(os.fsencode(entry.path)) >= PATH_LIMIT:
                continue
            yield relative, entry
            if enterable and (depth is None or len(levels) < depth):
                try:
                    levels.append((relative + "/", iter(_entries(entry.path, force))))
                except OSError:
                    continue

    def _relative(self, real):
        return "" if real == self.root else real[len(self.root.rstrip("/")) + 1 :] + "/"

    def files_below(self, path, ignore):
        """Yields (relative path, real path) of the regular files at or below `path`, sorted."""
        base = self.resolve(path)
        if os.path.isdir(base):
            for relative, entry in self.scan(base, self._relative(base), ignore):
                if entry.is_file(follow_symlinks=False):
                    yield relative, entry.path
        else:
            os.stat(base)
            yield self._relative(base).rstrip("/"), base


class Ignore:
    """gitignore patterns as regular expressions: (hide or show, expression) pairs, of which the last match counts.

    Expressions are matched against the path relative to the root; a folder's path ends in a slash.
    """

    def __init__(self, pairs):
        self.pairs = [(bool(hide), re.compile(expression)) for hide, expression in reversed(pairs)]

    def hides(self, relative, folder):
        """The last pattern's answer for a path relative to the root: True for hidden, False for shown."""
        name = relative + "/" if folder else relative
        for hide, expression in self.pairs:
            if expression.match(name):
                return hide
        return False

    def hides_below(self, relative, folder=False):
        """Whether a path or any folder it is in is hidden."""
        parts = relative.split("/")
        above = ("/".join(parts[:depth]) for depth in range(1, len(parts)))
        return any(self.hides(path, True) for path in above) or self.hides(relative, folder)


def _entries(folder, force=False):
    if force:
        make_accessible(folder, stat.S_IRUSR | stat.S_IXUSR)
    with os.scandir(folder) as listing:
        return sorted(listing, key=lambda entry: entry.name)


def make_accessible(path, wanted=stat.S_IRWXU):
    """Gives the owner of a file or folder these permissions. Does nothing if it has them, or they cannot be given."""
    with suppress(OSError):
        mode = stat.S_IMODE(os.lstat(path).st_mode)
        if mode & wanted != wanted:
            os.chmod(path, mode | wanted)


def kind_of(entry):
    """`file`, `dir`, `link` or `other`."""
    if entry.is_symlink():
        return "link"
    if entry.is_dir(follow_symlinks=False):
        return "dir"
    return "file" if entry.is_file(follow_symlinks=False) else "other"


def _size_of(entry):
    try:
        return entry.stat(follow_symlinks=False).st_size if entry.is_file(follow_symlinks=False) else 0
    except FileNotFoundError:
        return 0


def read_regular(path, limit=READ_LIMIT):
    """The bytes of a regular file; a pipe or a device is refused instead of waited for."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        found = os.fstat(descriptor)
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if not stat.S_ISREG(found.st_mode):
            raise PermissionError(errno.EACCES, "not a regular file", path)
        if found.st_size > limit:
            raise OSError(errno.EFBIG, "the file has {} bytes, more than {}".format(found.st_size, limit), path)
        # A stream would allocate room for as much as it may read.
        pieces, left = [], limit + 1
        while left > 0:
            pieces.append(os.read(descriptor, min(left, max(found.st_size + 1, PIECE))))
            left -= len(pieces[-1])
            if not pieces[-1]:
                break
        return b"".join(pieces)
    finally:
        os.close(descriptor)


def write_atomically(target, data, mode=None, mtime=None):
    """Writes beside `target` and renames; `mode` None keeps that of the file that was there (0644 for a new one)."""
    try:
        before = os.stat(target)
    except FileNotFoundError:
        before = None
    beside = os.path.join(os.path.dirname(target), ".gumshoe-{}".format(os.urandom(8).hex()))
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            if mode is None:
                mode = 0o644 if before is None else stat.S_IMODE(before.st_mode)
            os.fchmod(stream.fileno(), mode)
            if before is not None:
                with suppress(PermissionError):  # The owner is kept where that is allowed.
                    os.fchown(stream.fileno(), before.st_uid, before.st_gid)
        if mtime is not None:
            os.utime(beside, (mtime, mtime))
        os.rename(beside, target)
    except BaseException:
        os.unlink(beside)
        raise


def delete(path):
    """Removes whatever is there, with all that is in it: any depth, any permissions."""
    if os.path.islink(path) or not os.path.isdir(path):
        if os.path.lexists(path):
            os.unlink(path)
        return
    # Folders in folders are moved to the top first, so that no path becomes too long and nothing recurses.
    while True:
        folders = _unlink_files(path)
        if not folders:
            break
        for folder in folders:
            for inner in _unlink_files(folder):
                make_accessible(inner)
                os.rename(inner, os.path.join(path, ".gumshoe-{}".format(os.urandom(8).hex())))
            os.rmdir(folder)
    os.rmdir(path)


def _unlink_files(folder):
    """Removes everything in a folder except its subfolders, whose paths are returned."""
    make_accessible(folder)
    folders = []
    with os.scandir(folder) as listing:
        for entry in list(listing):
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
            else:
                os.unlink(entry.path)
    return folders


def hold_exactly(folder, files):
    """Makes a folder hold these files (path to bytes) and nothing else, whatever was there. Returns the paths of what
    was different.
    """
    different, folders = [], {}
    for path, data in files.items():
        first, slash, rest = path.partition("/")
        if slash:
            folders.setdefault(first, {})[rest] = data
    files = {path: data for path, data in files.items() if "/" not in path}
    if os.path.islink(folder) or not os.path.isdir(folder):
        delete(folder)
        os.makedirs(folder)
    os.chmod(folder, 0o700)
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if not (name in files or name in folders) or os.path.islink(path):
            delete(path)
            different.append(name)
    for name, data in files.items():
        path = os.path.join(folder, name)
        if _content(path) != data:
            delete(path)
            write_atomically(path, data)
            different.append(name)
    for name, inner in folders.items():
        different += ["{}/{}".format(name, path) for path in hold_exactly(os.path.join(folder, name), inner)]
    return different


def _content(path):
    """The bytes of a file; None where it is not one that can be read."""
    try:
        return read_regular(path)
    except OSError:
        return None


def grep(files, pattern, path, ignore, limit):
    """At most `limit` matches as (path, line, text), and whether there were more.

    Binary files (a NUL byte in the first 8 KiB) are passed over. Raises re.error, OSError, and TimeoutError for what
    takes too long.
    """
    expression = re.compile(pattern)
    filter_expression = None if LINE_BOUND.search(pattern) else re.compile(pattern, re.MULTILINE)
    matches = []
    with _TimeLimit(TIME_LIMIT_S):
        for relative, real in files.files_below(path, ignore):
            before = 0
            for text in _texts_of(real):
                if filter_expression is None or "\r" in text or filter_expression.search(text):
                    for number, line in enumerate(text.split("\n"), before + 1):
                        if expression.search(line.rstrip("\r")):
                            if len(matches) == limit:
                                return matches, True
                            matches.append((relative, number, line.rstrip("\r")[:LINE_LIMIT]))
                before += text.count("\n") + 1
    return matches, False


def _texts_of(path):
    """The text of a regular file, a large one in pieces of whole lines; nothing of one that holds none."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return
    with os.fdopen(descriptor, "rb") as stream:
        data = stream.read(TEXT_PIECE) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
        if b"\0" in data[:8192]:
            return
        while data:
            text = data + stream.readline(TEXT_PIECE)
            data = stream.read(TEXT_PIECE)
            yield (text[:-1] if data and text.endswith(b"\n") else text).decode("utf-8", "replace")


class _TimeLimit:
    """Raises TimeoutError in the block when it takes too long; `re` looks at signals while it works."""

    def __init__(self, seconds):
        self.seconds = seconds

    def __enter__(self):
        self.before = signal.signal(signal.SIGALRM, self._stop)
        signal.setitimer(signal.ITIMER_REAL, self.seconds)

    def __exit__(self, *_):
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self.before)

    def _stop(self, _number, _frame):
        raise TimeoutError(errno.ETIMEDOUT, "the search took longer than {} s".format(self.seconds))

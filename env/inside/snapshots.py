"""Snapshots of the workspace: contents by their SHA-256 in a folder beside it, and a list of paths.

A snapshot is named after the digest of its list, and contents are checked against their digest when they are read:
whoever changes what is kept makes it unusable, never wrong.
"""

import errno
import hashlib
import json
import os
import stat
import time

from gumshoe.env.inside.files import Ignore, delete, kind_of, read_regular, write_atomically

CONTENT_LIMIT = 64 << 20
# A file that changed this shortly before it was looked at may change again without its time stamp telling.
RACY_NS = 2 * 10**9


class Snapshots:
    """Keeps the files below `files.root` in `folder`. Files above 64 MiB are noted, not kept."""

    def __init__(self, files, folder):
        self.files = files
        self.folder = folder
        self._last = {}

    def take(self):
        """Keeps the files as they are and returns the snapshot's name."""
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        entries = {relative: self._facts(entry, self._last.get(relative), True) for relative, entry in self._scan()}
        self._last = entries
        text = json.dumps(entries, sort_keys=True).encode("ascii")
        name = hashlib.sha256(text).hexdigest()
        write_atomically(os.path.join(self.folder, name + ".json"), text, 0o600)
        return name

    def restore(self, name, only=None):
        """Puts every file back, modes and time stamps included, and removes what was not there.

        With `only`, an Ignore, no path is touched but those that it matches.
        """
        entries = self._load(name)
        self._make_root()
        present = dict(self._scan())
        if only is not None:
            entries = {path: facts for path, facts in entries.items() if only.hides_below(path, facts["kind"] == "dir")}
            present = {
                path: entry for path, entry in present.items() if only.hides_below(path, kind_of(entry) == "dir")
            }
        for relative in sorted(present, reverse=True):
            if relative not in entries or entries[relative]["kind"] != kind_of(present[relative]):
                delete(os.path.join(self.files.root, relative))
                del present[relative]
        for relative in sorted(entries):
            self._make_way(relative)
            self._put_back(relative, entries[relative], present.get(relative))

    def changes(self, name, ignore):
        """{path: (content then, content now)} of regular files whose bytes differ; None for not there.

        Files that have more than 64 MiB now are left out.
        """
        before = self._load(name)
        changed = {}
        left = set()
        for relative, entry in self._scan(ignore):
            known = before.get(relative, {})
            if kind_of(entry) != "file":
                continue
            left.add(relative)
            now = self._facts(entry, known, False)
            if now["digest"] != known.get("digest") and not str(now["digest"]).startswith("large:"):
                old = self._content(known) if "digest" in known else None
                changed[relative] = (old, read_regular(entry.path, CONTENT_LIMIT))
        for relative, known in before.items():
            if "digest" in known and relative not in left and not ignore.hides_below(relative):
                changed[relative] = (self._content(known), None)
        return changed

    def _scan(self, ignore=None):
        """(relative path, entry) of all below the root; nothing where the root is gone."""
        try:
            for found in self.files.scan(self.files.root, "", ignore or Ignore([])):
                yield found
        except (FileNotFoundError, NotADirectoryError):
            return

    def _facts(self, entry, known, keep):
        """What a snapshot notes of a path. `known` is what was noted before, `keep` stores the content."""
        found = entry.stat(follow_symlinks=False)
        kind = kind_of(entry)
        mode = stat.S_IMODE(found.st_mode)
        if kind == "link":
            return {"kind": kind, "mode": mode, "target": os.readlink(entry.path)}
        if kind != "file":
            return {"kind": kind, "mode": mode}
        stamp = [found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns]
        settled = time.time() * 10**9 - found.st_ctime_ns > RACY_NS
        if known and known.get("settled") and known.get("stamp") == stamp:
            digest = known["digest"]
        else:
            digest = self._digest(entry.path, stamp, keep)
        size = found.st_size
        return {"kind": kind, "mode": mode, "size": size, "stamp": stamp, "settled": settled, "digest": digest}

    def _digest(self, path, stamp, keep):
        if stamp[1] > CONTENT_LIMIT:
            return "large:" + ":".join(str(part) for part in stamp)
        data = read_regular(path, CONTENT_LIMIT)
        digest = hashlib.sha256(data).hexdigest()
        place = self._place(digest)
        if keep and not os.path.exists(place):
            os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)
            write_atomically(place, data, 0o600)
        return digest

    def _place(self, digest):
        return os.path.join(self.folder, "contents", digest[:2], digest)

    def _content(self, known):
        digest = known["digest"]
        if digest.startswith("large:"):
            raise OSError(
                errno.EFBIG, "a file above {} bytes was changed; its content was not kept".format(CONTENT_LIMIT)
            )
        return self._verified(self._place(digest), digest)

    def _load(self, name):
        return json.loads(self._verified(os.path.join(self.folder, name + ".json"), name).decode("ascii"))

    def _verified(self, place, digest):
        try:
            data = read_regular(place, 1 << 30)
        except OSError as error:
            text = "what the snapshot kept cannot be read: {}".format(error.strerror)
            raise OSError(errno.EIO, text, place) from None
        if hashlib.sha256(data).hexdigest() != digest:
            raise OSError(errno.EIO, "what the snapshot kept was changed", place)
        return data

    def _make_root(self):
        root = self.files.root
        if os.path.islink(root) or (os.path.exists(root) and not os.path.isdir(root)):
            os.unlink(root)
        os.makedirs(root, exist_ok=True)

    def _make_way(self, relative):
        """Sees to it that the folders above a path are folders, not something that was put in their place."""
        folder = self.files.root
        for part in relative.split("/")[:-1]:
            folder = os.path.join(folder, part)
            if os.path.islink(folder) or (os.path.exists(folder) and not os.path.isdir(folder)):
                os.unlink(folder)
            if not os.path.isdir(folder):
                os.mkdir(folder)

    def _put_back(self, relative, facts, entry):
        path = os.path.join(self.files.root, relative)
        if facts["kind"] == "dir":
            if entry is None:
                os.mkdir(path)
            os.chmod(path, facts["mode"] | stat.S_IRWXU)
        elif facts["kind"] == "link":
            if entry is None or os.readlink(path) != facts["target"]:
                if entry is not None:
                    os.unlink(path)
                os.symlink(facts["target"], path)
        elif facts["kind"] == "file":
            if entry is None or self._facts(entry, facts, False)["digest"] != facts["digest"]:
                write_atomically(path, self._content(facts), facts["mode"])
            os.chmod(path, facts["mode"])
            os.utime(path, ns=(facts["stamp"][2], facts["stamp"][2]))

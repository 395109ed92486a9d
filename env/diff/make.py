"""Unified diffs in git's format, from contents before and after, and from the diff that leads the other way.

With such a diff, `git apply` produces exactly the content after, modes and links included. Files that are not UTF-8
text (and those with NUL bytes, as in git) are carried as git's binary literals, so a patch is always plain text.
"""

from __future__ import annotations

import base64
import difflib
import hashlib
import re
import zlib
from collections.abc import Iterator, Mapping
from typing import Self

from gumshoe.env.diff.parse import parse_patch, split_lines
from gumshoe.errors import TaskError

FILE, LINK = "100644", "120000"
LINE_BYTES = 52
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
NEEDS_QUOTES = re.compile(r'[\x00-\x1f\x7f"\\\udc80-\udcff]')
ESCAPES = {"\a": "a", "\b": "b", "\t": "t", "\n": "n", "\v": "v", "\f": "f", "\r": "r", '"': '"', "\\": "\\"}
NO_NEWLINE = "\\ No newline at end of file\n"


class GitBlob(bytes):
    """The content of a file, or the target of a link, with git's mode: 100644, 100755 (executable) or 120000 (link)."""

    mode: str

    def __new__(cls, data: bytes, mode: str = FILE) -> Self:
        """The content with its mode."""
        blob = super().__new__(cls, data)
        blob.mode = mode
        return blob


def make_patch(changes: Mapping[str, tuple[bytes | None, bytes | None]]) -> str:
    """The diff of all changed files, in the order of their paths.

    Args:
        changes: path (with `/`, relative) to content before and after; None where there is no file. Bytes that are no
            `GitBlob` are the content of a file that is not executable.
    """
    changed = ((path, *changes[path]) for path in sorted(changes))
    return "".join(
        part
        for path, before, after in changed
        if (before, _mode(before)) != (after, _mode(after))
        for part in _file(path, before, after)
    )


def _mode(side: bytes | None) -> str:
    return side.mode if isinstance(side, GitBlob) else FILE


def _file(path: str, before: bytes | None, after: bytes | None) -> Iterator[str]:
    modes = _mode(before), _mode(after)
    if before is not None and after is not None and modes[0] != modes[1] and LINK in modes:
        yield from _file(path, before, None)
        yield from _file(path, None, after)
        return
    yield f"diff --git {_quoted('a/' + path)} {_quoted('b/' + path)}\n"
    if before is None:
        yield f"new file mode {modes[1]}\n"
    elif after is None:
        yield f"deleted file mode {modes[0]}\n"
    elif modes[0] != modes[1]:
        yield f"old mode {modes[0]}\nnew mode {modes[1]}\n"
    if before == after:
        return
    old, new = _text(before), _text(after)
    if old is None or new is None:
        yield f"index {_blob_hash(before)}..{_blob_hash(after)}\nGIT binary patch\n"
        yield from _literal(after or b"")
        yield from _literal(before or b"")
        return
    mode = "" if before is None or after is None or modes[0] != modes[1] else f" {modes[0]}"
    yield f"index {_blob_hash(before)[:7]}..{_blob_hash(after)[:7]}{mode}\n"
    if old or new:
        yield f"--- {'/dev/null' if before is None else _header_name('a/' + path)}\n"
        yield f"+++ {'/dev/null' if after is None else _header_name('b/' + path)}\n"
        lines = difflib.unified_diff(split_lines(old), split_lines(new), lineterm="\n")
        for line in list(lines)[2:]:  # The first two are file names.
            yield line if line.endswith("\n") else f"{line}\n{NO_NEWLINE}"


def _text(data: bytes | None) -> str | None:
    """The content as text, empty for no file; None where it has to be carried as binary."""
    try:
        return None if b"\0" in (data or b"") else (data or b"").decode("utf-8")
    except UnicodeDecodeError:
        return None


def _blob_hash(data: bytes | None) -> str:
    if data is None:
        return "0" * 40
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _literal(data: bytes) -> Iterator[str]:
    """One side of a binary diff: deflated, in base 85, 52 bytes a line, each line led by its length."""
    yield f"literal {len(data)}\n"
    packed = zlib.compress(data)
    for start in range(0, len(packed), LINE_BYTES):
        chunk = packed[start : start + LINE_BYTES]
        yield f"{LETTERS[len(chunk) - 1]}{base64.b85encode(chunk, pad=True).decode('ascii')}\n"
    yield "\n"


def _quoted(name: str) -> str:
    """The name as git writes it: in C quotes when it holds what would end or hide a line."""
    if not NEEDS_QUOTES.search(name):
        return name
    bytes_of_name = (chr(byte) for byte in name.encode("utf-8", "surrogateescape"))
    return '"{}"'.format("".join(map(_escaped, bytes_of_name)))


def _escaped(char: str) -> str:
    if char in ESCAPES:
        return f"\\{ESCAPES[char]}"
    return char if " " <= char <= "~" else f"\\{ord(char):03o}"


def _header_name(name: str) -> str:
    """The name after `---` or `+++`; one with spaces ends in a tab."""
    quoted = _quoted(name)
    return f"{quoted}\t" if " " in name and quoted == name else quoted


HUNK = re.compile(r"^@@ -(\d+(?:,(\d+))?) \+(\d+(?:,(\d+))?) @@")
INDEX = re.compile(r"^index ([0-9a-f]+)\.\.([0-9a-f]+)")
OTHER_SIDE = {"+": "-", "-": "+"}
SWAPPED = (("new file ", "deleted file "), ("old mode ", "new mode "), ("rename from ", "rename to "))


def reverse_patch(patch: str) -> str:
    """The diff that leads back. Raises TaskError for one that is not a diff, or that changes binary files."""
    if any(file.binary for file in parse_patch(patch)):
        raise TaskError("the patch changes a binary file: only text can be reversed")
    return "".join(_reversed(patch))


def _reversed(patch: str) -> Iterator[str]:
    old = new = 0
    source = ""
    for line in split_lines(patch):
        if old > 0 or new > 0:
            old -= line[0] not in "+\\"
            new -= line[0] not in "-\\"
            yield OTHER_SIDE.get(line[0], line[0]) + line[1:]
        elif hunk := HUNK.match(line):
            old, new = int(hunk[2] or 1), int(hunk[4] or 1)
            yield f"@@ -{hunk[3]} +{hunk[1]} @@{line[hunk.end() :]}"
        elif line.startswith("--- "):
            source = line
        elif line.startswith("+++ "):
            yield "--- " + re.sub('^("?)b/', r"\1a/", line[4:])
            yield "+++ " + re.sub('^("?)a/', r"\1b/", source[4:])
        else:
            yield _header(line)


def _header(line: str) -> str:
    if index := INDEX.match(line):
        return f"index {index[2]}..{index[1]}{line[index.end() :]}"
    for pair in SWAPPED:
        for words, other in (pair, pair[::-1]):
            if line.startswith(words):
                return other + line.removeprefix(words)
    return line

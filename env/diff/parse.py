"""Unified diffs as data: the files they touch, under which names, their hunks and binary contents."""

from __future__ import annotations

import base64
import re
import sys
import zlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from io import StringIO
from itertools import groupby

from unidiff.errors import UnidiffParseError
from unidiff.patch import Hunk, PatchedFile, PatchSet

from gumshoe.errors import TaskError

DEV_NULL = "/dev/null"
MODE = re.compile(r"(?:old|new|new file|deleted file) mode (\d{6})")
LINK = "120000"
PREFIX = re.compile(r"^[abciow12]/")
ESCAPE = re.compile(r"\\([0-7]{1,3}|.)")
ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
# A line of content is prefixed in a diff, so it cannot look like a file's header.
FILE_HEADER = re.compile(r"^(?=diff --git )", re.MULTILINE)
# The blocks of a binary file: the bytes after and before, whole or as a delta, deflated and in base 85.
BLOCK = re.compile(r"^(literal|delta) (\d{1,18})\n((?:[A-Za-z][!-~]+(?:\n|\Z))*+)", re.MULTILINE)
LARGEST_PATCH = 64 << 20
"""Bytes that a patch may take in memory, and bytes that its binary files may have, together."""
MOST_LINES = 500_000
"""Lines that a patch may have, those of binary files aside: each takes a few hundred bytes once it is parsed."""


@dataclass(frozen=True)
class FilePatch:
    """What a diff does to one file.

    Attributes:
        source: the path before; None for a new file.
        target: the path after; None for a deleted file.
        binary: whether it is a binary file, which has no hunks.
        content: the new content of a binary file; None where the diff has only a delta, or says only that it differs.
        modes: the modes in git's format that the diff names: of what is new, deleted, or before and after a change.
    """

    source: str | None
    target: str | None
    hunks: Sequence[Hunk]
    binary: bool
    content: bytes | None
    modes: tuple[str, ...] = ()

    @property
    def paths(self) -> set[str]:
        """The path before and the path after."""
        return {path for path in (self.source, self.target) if path is not None}


def parse_patch(patch: str) -> list[FilePatch]:
    """The files of a unified diff, plain or in git's format. Raises TaskError when it is not one, or is too large."""
    files = [file for part in _parts(patch) for file in _parse(part)]
    if patch.strip() and not files:
        raise TaskError("the patch is not a unified diff: it names no file")
    return files


def drop_files(patch: str, paths: Collection[str]) -> str:
    """A patch in git's format without the files `paths`. Raises TaskError as `parse_patch` does."""
    kept = (part for part in _parts(patch) if not any(file.paths & set(paths) for file in _parse(part)))
    return "".join(kept)


def gold_lines(patch: str) -> dict[str, set[int]]:
    """For each file of the buggy repository that `patch` changes, the numbers of the lines it touches, from 1.

    A removed or replaced line counts itself; inserted lines count the line before them (line 1 at the top of a file).
    A renamed file is listed under its old name, possibly without lines. Files that the patch adds are left out: nobody
    can point at them. Raises TaskError as `parse_patch` does.
    """
    gold: dict[str, set[int]] = {}
    for file in parse_patch(patch):
        if file.source is not None:
            gold.setdefault(file.source, set()).update(line for hunk in file.hunks for line in _touched(hunk))
    return gold


def split_lines(text: str) -> list[str]:
    r"""The lines of `text` with their ends, as diffs count them: `\r`, form feeds and U+2028 do not end a line."""
    return StringIO(text, newline="\n").readlines()


def _parts(patch: str) -> list[str]:
    """A git patch file by file. Raises TaskError where parsing it would take too much memory."""
    size = sys.getsizeof(patch)
    if size > LARGEST_PATCH:
        raise TaskError(f"the patch is too large: {size >> 20} MiB, of at most {LARGEST_PATCH >> 20}")
    blocks = list(BLOCK.finditer(patch))
    if sum(int(block[2]) for block in blocks) > LARGEST_PATCH:
        raise TaskError(f"the patch is too large: its binary files have more than {LARGEST_PATCH >> 20} MiB")
    lines = patch.count("\n") - sum(block[3].count("\n") for block in blocks)
    if lines > MOST_LINES:
        raise TaskError(f"the patch is too large: {lines:,} lines, of at most {MOST_LINES:,}")
    return FILE_HEADER.split(patch)


def _parse(part: str) -> Iterator[FilePatch]:
    try:
        files = PatchSet(BLOCK.sub("", part))
    except UnidiffParseError as error:
        raise TaskError(f"the patch is not a unified diff: {' '.join(str(error).split())}") from None
    # In git's format, a part is one file.
    content = _content(part) if len(files) == 1 and files[0].is_binary_file else None
    for file in files:
        source, target = _names(file)
        modes = tuple(found[1] for line in file.patch_info or () if (found := MODE.match(line)))
        yield FilePatch(source, target, list(file), file.is_binary_file, content, modes)


def _names(file: PatchedFile) -> tuple[str | None, str | None]:
    names = [_unquote(file.source_file), _unquote(file.target_file)]
    # A folder may be called `a`: only names that both carry a prefix are taken to have one.
    if all(name == DEV_NULL or PREFIX.match(name) for name in names):
        names = [name if name == DEV_NULL else PREFIX.sub("", name) for name in names]
    for line in file.patch_info or ():
        for side, words in enumerate(("rename from ", "rename to ")):
            if line.startswith(words):
                names[side] = _unquote(line.removeprefix(words).rstrip("\n"))
    source, target = (None if name == DEV_NULL else name for name in names)
    return source, target


def _unquote(name: str) -> str:
    """Undoes git's C-style quoting, in which each byte of a non-ASCII name is an octal escape."""
    if not (len(name) > 1 and name.startswith('"') and name.endswith('"')):
        return name
    text = ESCAPE.sub(_unescape, name[1:-1])
    return text.encode("latin-1", "backslashreplace").decode("utf-8", "surrogateescape")


def _unescape(match: re.Match[str]) -> str:
    escape = match.group(1)
    return chr(int(escape, 8)) if escape[0] in "01234567" else ESCAPED.get(escape, escape)


def _content(part: str) -> bytes | None:
    """The new content of a binary file. Raises TaskError where it is damaged."""
    block = BLOCK.search(part)
    if block is None or block[1] != "literal":
        return None
    size, decompressor = int(block[2]), zlib.decompressobj()
    try:
        packed = b"".join(_piece(line) for line in block[3].splitlines())
        data = decompressor.decompress(packed, size + 1)
    except (ValueError, zlib.error) as error:
        raise TaskError(f"the patch contains a damaged binary file: {error}") from None
    if len(data) != size or not decompressor.eof:
        raise TaskError(f"the patch contains a damaged binary file: its content is not {size} bytes long")
    return data


def _piece(line: str) -> bytes:
    """One line: a letter for its number of bytes, and the bytes in base 85."""
    length = ord(line[0]) - (ord("A") - 1 if line[0].isupper() else ord("a") - 27)
    return base64.b85decode(line[1:])[:length]


def _touched(hunk: Hunk) -> Iterator[int]:
    """The source lines of each run of changed lines between two context lines."""
    last = hunk.source_start - (hunk.source_length > 0)
    for is_context, run in groupby(hunk, key=lambda line: line.is_context):
        lines = list(run)
        if is_context:
            last = lines[-1].source_line_no or 0
            continue
        removed = [line.source_line_no or 0 for line in lines if line.is_removed]
        inserted = any(line.is_added for line in lines)
        yield from removed or ([max(last, 1)] if inserted else ())

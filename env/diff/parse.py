"""Unified diffs as data: the files they touch, under which names, their hunks and binary contents."""

from __future__ import annotations

import base64
import re
import zlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from io import StringIO
from itertools import groupby

from unidiff.errors import UnidiffParseError
from unidiff.patch import Hunk, PatchedFile, PatchSet

from gumshoe.errors import TaskError

__all__ = ["FilePatch", "drop_files", "gold_lines", "parse_patch", "split_lines"]

DEV_NULL = "/dev/null"
PREFIX = re.compile(r"^[abciow12]/")
ESCAPE = re.compile(r"\\([0-7]{1,3}|.)")
ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
# A line of content is prefixed in a diff, so it cannot look like a file's header.
FILE_HEADER = re.compile(r"^(?=diff --git )", re.MULTILINE)
LITERAL = re.compile(r"^GIT binary patch\nliteral (\d+)\n(.*?)(?:^\n|\Z)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class FilePatch:
    """What a diff does to one file.

    Attributes:
        source: the path before; None for a new file.
        target: the path after; None for a deleted file.
        binary: whether it is a binary file, which has no hunks.
        content: the new content of a binary file; None where the diff has only a delta, or says only that it differs.
    """

    source: str | None
    target: str | None
    hunks: Sequence[Hunk]
    binary: bool
    content: bytes | None

    @property
    def paths(self) -> set[str]:
        """The path before and the path after."""
        return {path for path in (self.source, self.target) if path is not None}


def parse_patch(patch: str) -> list[FilePatch]:
    """The files of a unified diff, plain or in git's format. Raises TaskError when it is not one."""
    files = [file for part in FILE_HEADER.split(patch) for file in _parse(part)]
    if patch.strip() and not files:
        raise TaskError("the patch is not a unified diff: it names no file")
    return files


def drop_files(patch: str, paths: Collection[str]) -> str:
    """A patch in git's format without the files `paths`. Raises TaskError when it is not a unified diff."""
    kept = (part for part in FILE_HEADER.split(patch) if not any(file.paths & set(paths) for file in _parse(part)))
    return "".join(kept)


def gold_lines(patch: str) -> dict[str, set[int]]:
    """For each file of the buggy repository that `patch` changes, the numbers of the lines it touches, from 1.

    A removed or replaced line counts itself; inserted lines count the line before them (line 1 at the top of a file).
    A renamed file is listed under its old name, possibly without lines. Files that the patch adds are left out: nobody
    can point at them. Raises TaskError when `patch` is not a unified diff.
    """
    gold: dict[str, set[int]] = {}
    for file in parse_patch(patch):
        if file.source is not None:
            gold.setdefault(file.source, set()).update(line for hunk in file.hunks for line in _touched(hunk))
    return gold


def split_lines(text: str) -> list[str]:
    r"""The lines of `text` with their ends, as diffs count them: `\r`, form feeds and U+2028 do not end a line."""
    return StringIO(text, newline="\n").readlines()


def _parse(part: str) -> Iterator[FilePatch]:
    try:
        files = PatchSet(part)
    except UnidiffParseError as error:
        raise TaskError(f"the patch is not a unified diff: {' '.join(str(error).split())}") from None
    for file in files:
        source, target = _names(file)
        content = _content(part) if file.is_binary_file else None
        yield FilePatch(source, target, list(file), file.is_binary_file, content)


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
    literal = LITERAL.search(part)
    if literal is None:
        return None
    try:
        data = zlib.decompress(b"".join(_piece(line) for line in literal[2].split("\n") if line))
    except (ValueError, zlib.error) as error:
        raise TaskError(f"the patch contains a damaged binary file: {error}") from None
    if len(data) != int(literal[1]):
        raise TaskError("the patch contains a truncated binary file")
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

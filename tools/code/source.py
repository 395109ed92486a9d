"""A text file as lines, with what an edit must preserve: encoding, byte order mark and newline style.

`Workspace.read_text` gives UTF-8 with undecodable bytes escaped. A Python file may declare another encoding; its
bytes are then read and written in that one.
"""

from __future__ import annotations

import codecs
import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from gumshoe.errors import ToolFailure

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")
_COOKIE = re.compile(r"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_BOM = "\ufeff"
_COMMENTED = 1000
"""Characters at the beginning in which a coding comment is looked for."""
_ASCII = (bytes(range(1, 128)).decode("ascii"), "\x1b(B")
"""All characters, and a sequence that switches character sets in some codecs."""


def split_lines(text: str) -> list[str]:
    """The lines with their ends, split as Python splits source: at LF, CRLF and CR only."""
    return _LINE.findall(text)


def count_common(one: Sequence[object], other: Sequence[object]) -> int:
    """How many items at the beginning are the same."""
    pairs = zip(one, other, strict=False)
    return next((index for index, (left, right) in enumerate(pairs) if left != right), min(len(one), len(other)))


@dataclass(frozen=True)
class SourceFile:
    """Lines with their ends. `newline` is the one used most."""

    lines: tuple[str, ...]
    bom: bool = False
    newline: str = "\n"

    @property
    def encoding(self) -> str:
        """The codec that the lines' own coding comment names."""
        return _encoding(self.lines)

    @property
    def shown(self) -> list[str]:
        """The lines as a reader sees them, without their ends."""
        return [line.rstrip("\r\n") for line in self.lines]

    def replace(self, start: int, end: int, code: str) -> SourceFile:
        """Lines `start` to `end` (from 1, both included; `end = start - 1` inserts) replaced by `code`.

        The new lines get the newline style of the file; the last line of `code` is ended unless it ends a file that
        had no newline at its end.
        """
        unended = bool(self.lines) and not self.lines[-1].endswith(("\n", "\r"))
        new = [line.rstrip("\r\n") + self.newline for line in split_lines(code)]
        before, after = list(self.lines[: start - 1]), list(self.lines[end:])
        if before and new and not before[-1].endswith(("\n", "\r")):
            before[-1] += self.newline
        lines = before + new + after
        if unended and new and not after:
            lines[-1] = lines[-1].rstrip("\r\n")
        return SourceFile(tuple(lines), self.bom, self.newline)

    def to_text(self) -> str:
        """What `Workspace.write_text` is to be given. Raises ToolFailure for a character the encoding lacks."""
        text = (_BOM if self.bom else "") + "".join(self.lines)
        encoding = self.encoding
        if encoding == "utf-8":
            return text
        try:
            data = text.encode(encoding, "surrogateescape")
        except UnicodeEncodeError as error:
            character = text[error.start]
            raise ToolFailure("bad_encoding", f"the file is {encoding}, which has no {character!r}") from None
        return data.decode("utf-8", "surrogateescape")


def read_source(text: str) -> SourceFile:
    """Reads what `Workspace.read_text` gave. Raises ToolFailure for a binary file."""
    if "\0" in text:
        raise ToolFailure("binary_file", "this is a binary file, which cannot be shown or edited")
    bom = text.startswith(_BOM)
    text = text[1:] if bom else text
    encoding = _encoding(split_lines(text[:_COMMENTED])[:2])
    if encoding != "utf-8":
        text = text.encode("utf-8", "surrogateescape").decode(encoding, "surrogateescape")
    lines = split_lines(text)
    return SourceFile(tuple(lines), bom, _newline(lines))


def _encoding(lines: Sequence[str]) -> str:
    """The codec that a coding comment in the first two lines names. UTF-8 where there is none that Python knows, or
    one that is not for texts of any bytes.
    """
    for line in lines[:2]:
        match = _COOKIE.match(line[:_COMMENTED])
        if match:
            return _plain_codec(match.group(1))
    return "utf-8"


@functools.cache
def _plain_codec(name: str) -> str:
    """The codec's own name, where ASCII texts stay as they are in it; else UTF-8."""
    try:
        known = codecs.lookup(name).name
        is_plain = all(text.encode().decode(known) == text == text.encode(known).decode() for text in _ASCII)
    except (LookupError, ValueError):
        return "utf-8"
    return known if is_plain else "utf-8"


def _newline(lines: list[str]) -> str:
    ends = [line[len(line.rstrip("\r\n")) :] for line in lines]
    used = [end for end in ends if end]
    return max(set(used), key=used.count) if used else "\n"

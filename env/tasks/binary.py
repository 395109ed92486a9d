"""Binary files in git's patches: what stands there once the patch is applied.

Only whole contents are read. What is not covered: git's deltas, which say how one content is made of another.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator

from gumshoe.env.tasks.lines import split_lines
from gumshoe.errors import TaskError

__all__ = ["binary_contents"]

MARK = "GIT binary patch\n"
ONLY_DIFFERENT = "Binary file"
LITERAL = "literal "


def binary_contents(patch: str) -> list[bytes | None]:
    """The new content of each binary file of a patch, in its order; None where it is a delta, or not given.

    Raises TaskError for one that is damaged.
    """
    lines = iter(split_lines(patch))
    return [
        _content(lines) if line == MARK else None for line in lines if line == MARK or line.startswith(ONLY_DIFFERENT)
    ]


def _content(lines: Iterator[str]) -> bytes | None:
    head = next(lines, "")
    if not head.startswith(LITERAL):
        return None
    packed = b""
    for line in lines:
        if not line.strip():
            break
        packed += _piece(line.rstrip("\n"))
    try:
        data = zlib.decompress(packed)
    except zlib.error as error:
        raise TaskError(f"the patch holds a damaged binary file: {error}") from None
    if str(len(data)) != head[len(LITERAL) :].strip():
        raise TaskError("the patch holds a binary file that is cut off")
    return data


def _piece(line: str) -> bytes:
    """One line: a letter for its number of bytes, and the bytes in base 85."""
    letter = line[0]
    length = ord(letter) - ord("A") + 1 if letter.isupper() else ord(letter) - ord("a") + 27
    try:
        return base64.b85decode(line[1:])[:length]
    except ValueError as error:
        raise TaskError(f"the patch holds a damaged binary file: {error}") from None

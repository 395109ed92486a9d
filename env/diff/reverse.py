"""Reverses a unified diff."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gumshoe.env.diff.parse import parse_patch, split_lines
from gumshoe.errors import TaskError

__all__ = ["reverse_patch"]

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

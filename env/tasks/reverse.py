"""The way back: a unified diff that undoes another."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gumshoe.env.tasks.lines import split_lines
from gumshoe.env.tasks.patch import parse_patch
from gumshoe.errors import TaskError

__all__ = ["reverse_patch"]

HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(.*)$", re.DOTALL)
INDEX = re.compile(r"^index ([0-9a-f]+)\.\.([0-9a-f]+)(.*)$", re.DOTALL)
OTHER_SIDE = {"+": "-", "-": "+"}
SWAPPED = {
    "new file mode ": "deleted file mode ",
    "deleted file mode ": "new file mode ",
    "old mode ": "new mode ",
    "new mode ": "old mode ",
    "rename from ": "rename to ",
    "rename to ": "rename from ",
}


def reverse_patch(patch: str) -> str:
    """The diff that leads back. Raises TaskError for one that is not a diff, or that changes binary files."""
    if any(file.binary for file in parse_patch(patch)):
        raise TaskError("the patch changes a binary file: only text can be taken back")
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
            old, new = (int(hunk[group] or 1) for group in (2, 4))
            yield f"@@ -{_range(hunk[3], hunk[4])} +{_range(hunk[1], hunk[2])} @@{hunk[5]}"
        elif line.startswith("--- "):
            source = line
        elif line.startswith("+++ "):
            yield f"--- {_prefixed(line[4:], 'b/', 'a/')}"
            yield f"+++ {_prefixed(source[4:], 'a/', 'b/')}"
        else:
            yield _header(line)


def _range(start: str, length: str | None) -> str:
    return start if length is None else f"{start},{length}"


def _header(line: str) -> str:
    index = INDEX.match(line)
    if index:
        return f"index {index[2]}..{index[1]}{index[3]}"
    found = next((words for words in SWAPPED if line.startswith(words)), None)
    return line if found is None else SWAPPED[found] + line[len(found) :]


def _prefixed(name: str, old: str, new: str) -> str:
    quote = '"' if name.startswith('"') else ""
    return quote + new + name[len(quote) + len(old) :] if name[len(quote) :].startswith(old) else name

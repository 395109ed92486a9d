"""Unified diffs as data: which files they touch, under which names, and their hunks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from unidiff.errors import UnidiffParseError
from unidiff.patch import Hunk, PatchedFile, PatchSet

from gumshoe.errors import TaskError

__all__ = ["FilePatch", "parse_patch"]

DEV_NULL = "/dev/null"
PREFIX = re.compile(r"^[abciow12]/")
ESCAPE = re.compile(r"\\([0-7]{1,3}|.)")
ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


@dataclass(frozen=True)
class FilePatch:
    """What a diff does to one file. `source` is None for a new file, `target` None for a deleted one."""

    source: str | None
    target: str | None
    hunks: Sequence[Hunk]
    binary: bool


def parse_patch(patch: str) -> list[FilePatch]:
    """The files of a unified diff, plain or in git's format. Raises TaskError when it is not one."""
    try:
        files = PatchSet(patch)
    except UnidiffParseError as error:
        raise TaskError(f"the patch is not a unified diff: {' '.join(str(error).split())}") from None
    if patch.strip() and not files:
        raise TaskError("the patch is not a unified diff: it names no file")
    return [_file_patch(file) for file in files]


def _file_patch(file: PatchedFile) -> FilePatch:
    source, target = _unquote(file.source_file), _unquote(file.target_file)
    # A folder may be called `a`: only names that both carry a prefix are taken to have one.
    if all(name == DEV_NULL or PREFIX.match(name) for name in (source, target)):
        source, target = PREFIX.sub("", source), PREFIX.sub("", target)
    for line in file.patch_info or ():
        if line.startswith("rename from "):
            source = _unquote(line[len("rename from ") :].rstrip("\n"))
        elif line.startswith("rename to "):
            target = _unquote(line[len("rename to ") :].rstrip("\n"))
    return FilePatch(
        source=None if source == DEV_NULL else source,
        target=None if target == DEV_NULL else target,
        hunks=list(file),
        binary=file.is_binary_file,
    )


def _unquote(name: str) -> str:
    """Undoes git's C-style quoting, in which each byte of a non-ASCII name is an octal escape."""
    if not (len(name) > 1 and name.startswith('"') and name.endswith('"')):
        return name
    text = ESCAPE.sub(_unescape, name[1:-1])
    return text.encode("latin-1", "backslashreplace").decode("utf-8", "surrogateescape")


def _unescape(match: re.Match[str]) -> str:
    escape = match.group(1)
    return chr(int(escape, 8)) if escape[0] in "01234567" else ESCAPED.get(escape, escape)

"""Applies a unified diff to texts, in pure Python.

Strict on purpose: every context line and every removed line must stand exactly where the diff says. A patch that has
drifted is a broken task, and guessing where it belongs would hide that.
"""

from __future__ import annotations

from collections.abc import Mapping

from unidiff.patch import Hunk

from gumshoe.env.tasks.binary import binary_contents
from gumshoe.env.tasks.lines import split_lines
from gumshoe.env.tasks.patch import FilePatch, parse_patch
from gumshoe.errors import TaskError

__all__ = ["apply_patch", "patched_paths"]


def patched_paths(patch: str) -> list[str]:
    """The files that must be known to apply `patch`, in its order. Raises TaskError."""
    return list(dict.fromkeys(file.source for file in parse_patch(patch) if file.source is not None))


def apply_patch(files: Mapping[str, str], patch: str) -> dict[str, str | None]:
    """The texts that `patch` changes, each as it becomes; None stands for a file that is deleted or renamed away.

    Args:
        files: path to text, at least of the files that the patch touches; line ends as they are in the file, bytes
            that are not UTF-8 as surrogate escapes, here and in what is returned.
        patch: a unified diff, plain or in git's format.

    Raises:
        TaskError: it is not a diff, does not fit the files, or says of a binary file only how it differs.
    """
    changed: dict[str, str | None] = {}
    contents = iter(binary_contents(patch))
    for file in parse_patch(patch):
        text = _before(file, {**files, **changed})
        if file.source is not None and file.source != file.target:
            changed[file.source] = None
        after = _binary(file, next(contents, None)) if file.binary else _apply_hunks(file, text)
        if file.target is not None:
            changed[file.target] = after
    return changed


def _binary(file: FilePatch, content: bytes | None) -> str:
    if content is None:
        name = file.target or file.source
        raise TaskError(f"the patch changes the binary file {name} without its whole content: use git diff --binary")
    return content.decode("utf-8", "surrogateescape")


def _before(file: FilePatch, files: Mapping[str, str | None]) -> str:
    if file.source is None:
        return ""
    text = files.get(file.source)
    if text is None:
        raise TaskError(f"the patch does not apply: there is no file {file.source}")
    return text


def _apply_hunks(file: FilePatch, text: str) -> str:
    lines = split_lines(text)
    result: list[str] = []
    done = 0
    for hunk in file.hunks:
        # A hunk without source lines names the line that it comes after.
        start = hunk.source_start if hunk.source_length == 0 else hunk.source_start - 1
        if start < done or start > len(lines):
            raise TaskError(f"the patch does not apply: {file.source} has no line {hunk.source_start}")
        result += lines[done:start]
        old, new = _sides(hunk)
        found = lines[start : start + len(old)]
        if found != old:
            raise TaskError(_mismatch(file.source, start, old, found))
        result += new
        done = start + len(old)
    return "".join(result + lines[done:])


def _sides(hunk: Hunk) -> tuple[list[str], list[str]]:
    """The hunk's lines before and after, each with its line end."""
    old: list[str] = []
    new: list[str] = []
    sides: list[list[str]] = []
    for line in hunk:
        if line.line_type == "\\":
            for side in sides:
                side[-1] = side[-1].removesuffix("\n")
            continue
        # unidiff keeps a blank line that follows a complete hunk; it belongs to no side.
        sides = [old] * (line.is_context or line.is_removed) + [new] * (line.is_context or line.is_added)
        for side in sides:
            side.append(line.value)
    return old, new


def _mismatch(path: str | None, start: int, old: list[str], found: list[str]) -> str:
    for offset, expected in enumerate(old):
        actual = found[offset] if offset < len(found) else None
        if actual != expected:
            seen = "the end of the file" if actual is None else repr(actual)
            return f"the patch does not apply: {path}:{start + offset + 1} should be {expected!r} but is {seen}"
    raise AssertionError("the lines are equal")

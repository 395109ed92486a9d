"""Where the cause of a bug stands: the lines of the buggy files that the gold patch touches."""

from __future__ import annotations

from collections.abc import Iterator

from unidiff.patch import Hunk

from gumshoe.env.tasks.patch import parse_patch

__all__ = ["gold_lines"]


def gold_lines(patch: str) -> dict[str, set[int]]:
    """For each file of the buggy repository that `patch` changes, the numbers of the lines it touches, from 1.

    A removed or replaced line counts itself; lines that are only put in count the line before them (line 1 at the
    top of a file). A renamed file stands under its old name, maybe without lines. Files that the patch adds are
    left out: nobody can point at them. Raises TaskError when `patch` is not a unified diff.
    """
    gold: dict[str, set[int]] = {}
    for file in parse_patch(patch):
        if file.source is not None:
            lines = gold.setdefault(file.source, set())
            lines.update(line for hunk in file.hunks for line in _touched(hunk))
    return gold


def _touched(hunk: Hunk) -> Iterator[int]:
    """The source lines of each run of changed lines between two context lines."""
    before = hunk.source_start if hunk.source_length == 0 else hunk.source_start - 1
    removed: list[int] = []
    added = False
    for line in hunk:
        if line.is_removed:
            removed.append(line.source_line_no or 0)
        elif line.is_added:
            added = True
        elif line.is_context:
            yield from removed or ([max(before, 1)] if added else ())
            removed, added = [], False
            before = line.source_line_no or 0
    yield from removed or ([max(before, 1)] if added else ())

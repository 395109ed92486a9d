"""Edits in an answer of text: blocks of code, and where in the code that was shown each of them goes.

Small models write code well and JSON badly. They are also careless with line numbers, so a block is laid over the
shown code by its lines; what its first line says only decides where nothing matches.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gumshoe.collect.packs import clean_path
from gumshoe.text import FENCE, indentation

__all__ = ["CodeEdit", "Shown", "edits_in"]

SIMILAR = 0.6
"""How much a single line has to be like the line that it replaces."""
_PLACE = re.compile(r"\s*#\s*(?:lines? )?(?P<path>[^\s:]+\.\w+):(?P<start>\d+)(?:-(?P<end>\d+))?\s*")
_NUMBER = re.compile(r"[> ]*\d+(?: |$)")


@dataclass(frozen=True)
class Shown:
    """Consecutive lines of a file that the model has seen."""

    path: str
    start: int
    lines: tuple[str, ...]

    @property
    def end(self) -> int:
        """The last line's number."""
        return self.start + len(self.lines) - 1


@dataclass(frozen=True)
class CodeEdit:
    """Lines start to end of a file, and the code that takes their place."""

    path: str
    start: int
    end: int
    code: str

    def arguments(self) -> dict[str, Any]:
        """The arguments of `rewrite`."""
        return {"path": self.path, "start": self.start, "end": self.end, "code": self.code}


def edits_in(text: str, shown: Sequence[Shown]) -> tuple[CodeEdit, ...]:
    """The edits that an answer's blocks make, from the end of each file to its beginning.

    Blocks that change nothing, that go nowhere, or that overlap with an earlier one are left out.
    """
    found: list[CodeEdit] = []
    for fence in FENCE.finditer(text):
        edit = _edit(fence["body"].splitlines(), shown)
        if edit is not None and not any(_overlap(edit, other) for other in found):
            found.append(edit)
    return tuple(sorted(found, key=lambda edit: (edit.path, -edit.start)))


def _edit(block: Sequence[str], shown: Sequence[Shown]) -> CodeEdit | None:
    said = _PLACE.fullmatch(block[0]) if block else None
    lines = _without_numbers(block[1:] if said else block)
    if not any(line.strip() for line in lines):
        return None
    path = clean_path(said["path"]) if said else None
    laid = [(score, edit) for each in shown if path in (None, each.path) for score, edit in [_laid(lines, each)]]
    score, edit = max(laid, key=lambda one: one[0], default=(0.0, None))
    if edit is not None and score > 0:
        return edit if _changes(edit, shown) else None
    return _as_said(said, lines) if said else None


def _as_said(said: re.Match[str], lines: Sequence[str]) -> CodeEdit:
    start = int(said["start"])
    return CodeEdit(clean_path(said["path"]), start, max(start, int(said["end"] or start)), "\n".join(lines))


def _without_numbers(block: Sequence[str]) -> list[str]:
    """The lines without numbers that were copied, if all of them have one."""
    solid = [line for line in block if line.strip()]
    if solid and all(_NUMBER.match(line) for line in solid):
        return [_NUMBER.sub("", line, count=1) for line in block]
    return [line.rstrip() for line in block]


def _laid(block: Sequence[str], shown: Shown) -> tuple[float, CodeEdit | None]:
    """The block over the lines of `shown` that it matches best, and how much it matches; None where nothing does.

    What stands before its first common line and after its last one replaces as many lines there.
    """
    old, new = [line.strip() for line in shown.lines], [line.strip() for line in block]
    common = [match for match in _matches(old, new) if any(old[match.a : match.a + match.size])]
    if not common:
        return _most_similar(block, shown)
    first, last = common[0], common[-1]
    start = max(0, first.a - first.b)
    end = min(len(old), last.a + len(new) - last.b)
    moved = indentation(shown.lines[first.a]) - indentation(block[first.b])
    code = "\n".join(_moved(line, moved) for line in block)
    score = sum(match.size for match in common) / len(new)
    return score, CodeEdit(shown.path, shown.start + start, shown.start + end - 1, code)


def _matches(old: Sequence[str], new: Sequence[str]) -> list[difflib.Match]:
    return difflib.SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()[:-1]


def _most_similar(block: Sequence[str], shown: Shown) -> tuple[float, CodeEdit | None]:
    """A block of one line over the line that it is most like."""
    (line, *more) = [line for line in block if line.strip()]
    if more:
        return 0.0, None
    likeness = [difflib.SequenceMatcher(None, old.strip(), line.strip()).ratio() for old in shown.lines]
    best = max(range(len(likeness)), key=likeness.__getitem__, default=None)
    if best is None or likeness[best] < SIMILAR:
        return 0.0, None
    code = _moved(line, indentation(shown.lines[best]) - indentation(line))
    return likeness[best] / 2, CodeEdit(shown.path, shown.start + best, shown.start + best, code)


def _moved(line: str, by: int) -> str:
    if not line.strip():
        return ""
    return " " * by + line if by > 0 else line[min(-by, indentation(line)) :]


def _changes(edit: CodeEdit, shown: Sequence[Shown]) -> bool:
    before = next(each for each in shown if each.path == edit.path and each.start <= edit.start <= each.end)
    return edit.code.splitlines() != [*before.lines[edit.start - before.start : edit.end - before.start + 1]]


def _overlap(one: CodeEdit, other: CodeEdit) -> bool:
    return one.path == other.path and one.start <= other.end and other.start <= one.end

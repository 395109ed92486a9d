"""The breakpoints of a pdb session, kept outside of it: they outlive the program and move with the code."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from gumshoe.tools.code.source import count_common, split_lines

__all__ = ["BreakpointTable", "moved_line"]

MOST_COMPARED = 4_000_000
"""Lines before times lines after: what repeats itself takes time in proportion."""
LIKENESS, MOST_LIKE = 0.6, 200
"""How like a line must be to be taken for the old one (`SequenceMatcher.ratio`), and how many are looked at."""


@dataclass
class BreakpointTable:
    """Breakpoints as the debugger describes them: `number, path, line, condition, temporary, ignore, enabled, ...`."""

    items: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def marks(self, path: str) -> frozenset[int]:
        """Lines of a file with a breakpoint that is switched on."""
        clean = path.removeprefix("./")
        return frozenset(
            int(item["line"]) for item in self.items if item["path"] == clean and item.get("enabled", True)
        )

    def follow(self, path: str, before: str | None, after: str | None) -> list[str]:
        """Moves the breakpoints of a file that was changed. Returns a word for each that was dropped."""
        if not any(item["path"] == path for item in self.items):
            return []
        old, new = split_lines(before or ""), split_lines(after or "")
        dropped: list[str] = []
        kept: list[dict[str, Any]] = []
        for item in self.items:
            line = moved_line(old, new, item["line"]) if item["path"] == path else item["line"]
            if line is None:
                dropped.append(f"breakpoint {item['number']} dropped: line {path}:{item['line']} is gone")
            else:
                kept.append({**item, "line": line})
        self.items = kept
        return dropped


def moved_line(before: Sequence[str], after: Sequence[str], line: int) -> int | None:
    """Where `line` (from 1) of `before` is in `after`; None when it is gone.

    A line inside a block that was rewritten goes to the line of the new block that is most like it, or stays at its
    place in the block, if the new block is long enough. Where too much was rewritten to compare, lines between the
    first and the last change are gone.
    """
    head = count_common(before, after)
    tail = count_common(before[head:][::-1], after[head:][::-1])
    if line <= head:
        return line
    if len(before) - tail < line <= len(before):
        return line - len(before) + len(after)
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    if len(old) * len(new) > MOST_COMPARED:
        return None
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for _, old_start, old_end, new_start, new_end in matcher.get_opcodes():
        if old_start <= line - 1 - head < old_end:
            place = new_start + (line - 1 - head - old_start)
            if old_end - old_start != new_end - new_start or old[line - 1 - head] != new[place]:
                place = _most_like(old[line - 1 - head], new, new_start, new_end, place)
            return head + place + 1 if place < new_end else None
    return None


def _most_like(text: str, lines: Sequence[str], start: int, end: int, otherwise: int) -> int:
    """The index of the line from `start` to `end` that is most like `text`; `otherwise` where none is like it."""
    matcher = difflib.SequenceMatcher(None, "", text.strip(), autojunk=False)
    best, found = LIKENESS, otherwise
    for index in sorted(range(start, min(end, start + MOST_LIKE)), key=lambda index: abs(index - otherwise)):
        matcher.set_seq1(lines[index].strip())
        if matcher.real_quick_ratio() > best and matcher.quick_ratio() > best and matcher.ratio() > best:
            best, found = matcher.ratio(), index
    return found

"""`view`: lines of a file."""

from __future__ import annotations

from itertools import accumulate

from gumshoe.errors import ToolFailure
from gumshoe.protocols import Workspace
from gumshoe.records import Observation
from gumshoe.tools.base import BaseTool
from gumshoe.tools.source import read_source
from gumshoe.tools.text import cut_line, plural

__all__ = ["View"]

_LIMIT = 200
_TITLE = 60
"""Characters of the first line beside the path."""


class View(BaseTool):
    """Shows numbered lines; a star stands before a line with a breakpoint."""

    name = "view"

    def run(self, workspace: Workspace, path: str, start: int = 1, end: int | None = None) -> Observation:
        """Show lines of a file. `*` marks breakpoints.

        Args:
            path: file
            start: first line
            end: last line
        """
        lines = read_source(workspace.read_text(path)).shown
        first, last = _range(path, len(lines), start, end)
        marks = self.events.marks(path)
        width = len(str(last))
        shown = [cut_line(line) for line in lines[first - 1 : last]]
        numbered = [
            f"{'*' if number in marks else ' '}{number:>{width}} {line}" for number, line in enumerate(shown, first)
        ]
        fitting = _fitting(numbered, self.events.text_limit - len(path) - _TITLE)
        shown, numbered, last = shown[:fitting], numbered[:fitting], first + fitting - 1
        title = f"{path} {first}-{last} of {plural(len(lines), 'line')}" if lines else f"{path} is empty"
        return self.observe(
            "\n".join([title, *numbered]),
            {
                "path": path,
                "start": first,
                "end": last,
                "total": len(lines),
                "lines": shown,
                "breakpoints": sorted(number for number in marks if first <= number <= last),
            },
        )


def _fitting(lines: list[str], limit: int) -> int:
    """How many lines have room in a text, at least one: what is read must not lose its middle."""
    ends = accumulate(len(line) + 1 for line in lines)
    return max(sum(end <= limit for end in ends), min(len(lines), 1))


def _range(path: str, total: int, start: int, end: int | None) -> tuple[int, int]:
    """The lines to show: at most `_LIMIT`, and none past the end. An empty file has lines 1 to 0."""
    first = max(start, 1)
    if first > max(total, 1):
        raise ToolFailure("no_such_line", f"{path} has only {plural(total, 'line')}")
    if end is not None and end < first:
        raise ToolFailure("bad_arguments", f"end {end} is before start {first}")
    return first, min(total, first + _LIMIT - 1, end if end is not None else total)

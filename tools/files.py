"""The files of the workspace: `listdir`, `view` and `grep` show them, `rewrite` changes one."""

from __future__ import annotations

import difflib
import re
from itertools import accumulate

from gumshoe.errors import ToolFailure
from gumshoe.protocols import Workspace
from gumshoe.records import Decision, Entry, Observation
from gumshoe.text import cut_line, plural
from gumshoe.tools.base import TEXT_LIMIT, BaseTool
from gumshoe.tools.code.source import SourceFile, read_source
from gumshoe.tools.runs.commands import syntax_error

_MOST_ENTRIES = 200
_MAX_DEPTH = 8
_BREAKS = {ord("\n"): "\\n", ord("\r"): "\\r", ord("\t"): "\\t"}
"""A name is one line, whatever is in it."""
_MOST_LINES = 200
_TITLE = 60
"""Characters of the first line beside the path."""
_MOST_MATCHES = 50


class ListDir(BaseTool):
    """Shows a folder as an indented tree, folders with a slash."""

    name = "listdir"

    def run(self, workspace: Workspace, path: str = ".", depth: int = 2) -> Observation:
        """List a folder as a tree.

        Args:
            path: folder
            depth: levels
        """
        entries = workspace.list(path, max(1, min(depth, _MAX_DEPTH)))
        shown = entries[:_MOST_ENTRIES]
        base = _depth(path)
        lines = [_line(entry, base) for entry in shown]
        if len(entries) > _MOST_ENTRIES:
            lines.append(f"[... {len(entries) - _MOST_ENTRIES} more ...]")
        return self.observe(
            "\n".join(lines) or "empty folder",
            {"entries": [entry.model_dump() for entry in shown]},
            truncated=len(entries) > _MOST_ENTRIES,
        )


def _depth(path: str) -> int:
    return len([part for part in path.split("/") if part not in ("", ".")])


def _line(entry: Entry, base: int) -> str:
    parts = entry.path.split("/")
    name = parts[-1].translate(_BREAKS)
    return "  " * (len(parts) - base - 1) + name + ("/" if entry.kind == "dir" else "")


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
        fitting = _fitting(numbered, TEXT_LIMIT - len(path) - _TITLE)
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
    """How many lines have room in a text: what is read must not lose its middle."""
    return sum(end <= limit for end in accumulate(len(line) + 1 for line in lines))


def _range(path: str, total: int, start: int, end: int | None) -> tuple[int, int]:
    """The lines to show: at most `_MOST_LINES`, and none past the end. An empty file has lines 1 to 0."""
    first = max(start, 1)
    if first > max(total, 1):
        raise ToolFailure("no_such_line", f"{path} has only {plural(total, 'line')}")
    if end is not None and end < first:
        raise ToolFailure("bad_arguments", f"end {end} is before start {first}")
    return first, min(total, first + _MOST_LINES - 1, end if end is not None else total)


class Grep(BaseTool):
    """Searches the files of a folder, or one file."""

    name = "grep"

    def run(self, workspace: Workspace, pattern: str, path: str = ".", literal: bool = False) -> Observation:
        """Find lines that match a regular expression.

        Args:
            pattern: regular expression
            path: file or folder
            literal: take the pattern as plain text
        """
        matches, more = workspace.grep(_expression(pattern, literal), path, limit=_MOST_MATCHES)
        lines = [f"{match.path}:{match.line}: {cut_line(match.text.strip())}" for match in matches]
        if more:
            lines.append(f"[... more than {_MOST_MATCHES} matches: narrow the pattern or the path ...]")
        return self.observe(
            "\n".join(lines) or "no match", {"matches": [match.model_dump() for match in matches]}, truncated=more
        )


def _expression(pattern: str, literal: bool) -> str:
    """The regular expression to search for. One that is not valid, such as `f(`, is meant as plain text."""
    if literal:
        return re.escape(pattern)
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return re.escape(pattern)
    return pattern


class Rewrite(BaseTool):
    """Replaces a range of lines by new code in one atomic write, and answers with the diff."""

    name = "rewrite"
    decision = Decision.EDIT

    def run(
        self, workspace: Workspace, path: str, code: str, start: int | None = None, end: int | None = None
    ) -> Observation:
        """Replace lines start to end of a file by code. Without start: the whole file, or a new one.

        Args:
            path: file
            code: new lines with their indentation; empty deletes
            start: first line replaced
            end: last line replaced (default start; start-1 inserts)
        """
        if "\0" in code:
            raise ToolFailure("bad_arguments", "code holds a NUL character, which no text file does")
        before = _read(workspace, path)
        after = _edited(path, before, code, start, end)
        old_text = before.to_text() if before is not None else None
        if after.to_text() == old_text:
            raise ToolFailure("no_change", f"{path} already has this content: nothing was changed")
        workspace.write_text(path, after.to_text())
        diff = _diff(before, after)
        error = syntax_error(workspace, after.to_text()) if path.endswith((".py", ".pyi")) else None
        title = f"{'rewrote' if before is not None else 'created'} {path}"
        lines = [title, diff] if error is None else [title, diff, error]
        return self.observe("\n".join(lines), {"path": path, "diff": diff, "syntax_error": error})


def _read(workspace: Workspace, path: str) -> SourceFile | None:
    """The file as it is; None where there is none."""
    try:
        return read_source(workspace.read_text(path))
    except ToolFailure as failure:
        if failure.kind == "no_such_file":
            return None
        raise


def _edited(path: str, before: SourceFile | None, code: str, start: int | None, end: int | None) -> SourceFile:
    if before is None:
        if start not in (None, 0, 1):
            raise ToolFailure("no_such_file", f"there is no {path}: leave out start and end to create it")
        return SourceFile(()).replace(1, 0, code)
    total = len(before.lines)
    if start is None:
        if end is not None:
            raise ToolFailure("bad_arguments", "end needs start")
        return before.replace(1, total, code)
    last = start if end is None else end
    if start < 1 or last < start - 1:
        raise ToolFailure(
            "bad_arguments",
            f"lines {start} to {last} are not a range: start must be at least 1, and end at least start",
        )
    inserting = last == start - 1
    if last > total or start > total + (1 if inserting else 0):
        raise ToolFailure("no_such_line", f"{path} has only {plural(total, 'line')}: view it again")
    return before.replace(start, last, code)


def _diff(before: SourceFile | None, after: SourceFile) -> str:
    """The hunks of a unified diff, without its file header."""
    old = before.shown if before is not None else []
    hunks = list(difflib.unified_diff(old, after.shown, n=2, lineterm=""))[2:]
    return "\n".join(hunks) or "only line ends changed"

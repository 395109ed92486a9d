"""`rewrite`: change lines of a file, or make one."""

from __future__ import annotations

import difflib

from gumshoe.errors import ToolFailure
from gumshoe.protocols import Workspace
from gumshoe.records import Decision, Observation
from gumshoe.tools.base import BaseTool
from gumshoe.tools.source import SourceFile, read_source
from gumshoe.tools.syntax import syntax_error
from gumshoe.tools.text import plural

__all__ = ["Rewrite"]


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
        error = _syntax_error(workspace, path, after)
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


def _syntax_error(workspace: Workspace, path: str, source: SourceFile) -> str | None:
    """What the sandbox's Python says about the new text of a Python file; None when it reads it."""
    return syntax_error(workspace, source.to_text()) if path.endswith((".py", ".pyi")) else None

"""`grep`: lines that match a pattern."""

from __future__ import annotations

import re

from gumshoe.protocols import Workspace
from gumshoe.records import Observation
from gumshoe.tools.base import BaseTool
from gumshoe.tools.text import cut_line

__all__ = ["Grep"]

_LIMIT = 50


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
        matches, more = workspace.grep(_expression(pattern, literal), path, limit=_LIMIT)
        lines = [f"{match.path}:{match.line}: {cut_line(match.text.strip())}" for match in matches]
        if more:
            lines.append(f"[... more than {_LIMIT} matches: narrow the pattern or the path ...]")
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

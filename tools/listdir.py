"""`listdir`: what is in a folder."""

from __future__ import annotations

from gumshoe.protocols import Workspace
from gumshoe.records import Entry, Observation
from gumshoe.tools.base import BaseTool

__all__ = ["ListDir"]

_LIMIT = 200
_MAX_DEPTH = 8
_BREAKS = {ord("\n"): "\\n", ord("\r"): "\\r", ord("\t"): "\\t"}
"""A name is one line, whatever is in it."""


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
        shown = entries[:_LIMIT]
        base = _depth(path)
        lines = [_line(entry, base) for entry in shown]
        if len(entries) > _LIMIT:
            lines.append(f"[... {len(entries) - _LIMIT} more ...]")
        return self.observe(
            "\n".join(lines) or "empty folder",
            {"entries": [entry.model_dump() for entry in shown]},
            truncated=len(entries) > _LIMIT,
        )


def _depth(path: str) -> int:
    return len([part for part in path.split("/") if part not in ("", ".")])


def _line(entry: Entry, base: int) -> str:
    parts = entry.path.split("/")
    name = parts[-1].translate(_BREAKS)
    return "  " * (len(parts) - base - 1) + name + ("/" if entry.kind == "dir" else "")

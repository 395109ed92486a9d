"""The functions that a gold patch edits, by LocAgent's rule, which SweRank and CodeScout also use."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from unidiff.patch import Hunk, Line

from gumshoe.env.diff import apply_hunks, parse_patch, relocate
from gumshoe.errors import TaskError
from gumshoe.tools.spans import Span, spans

__all__ = ["edited_functions", "function_of"]


def edited_functions(patch: str, read: Callable[[str], str | None]) -> tuple[str, ...] | None:
    """The existing functions that `patch` edits, each as `path:name`, in the order of the patch.

    A function counts when the patch removes or adds a line in it that is neither blank, nor a comment, nor an import.
    Functions that the patch adds do not count, nor do lines of a class or a module outside of any function. A nested
    function belongs to the one around it.

    Args:
        patch: a unified diff.
        read: gives the text of a file before the patch; None where it cannot be read.

    Returns:
        None where a Python file that the patch changes cannot be read or parsed, or the patch does not fit it.

    Raises:
        TaskError: `patch` is not a unified diff.
    """
    found: dict[str, None] = {}
    for file in parse_patch(patch):
        if file.source is None or not file.source.endswith(".py") or not file.hunks:
            continue
        before = read(file.source)
        if before is None:
            return None
        file = relocate(file, before)
        try:
            old, new = _Code.parse(before), _Code.parse(apply_hunks(file, before))
        except TaskError:
            return None
        if old is None or new is None:
            return None
        for line in (line for hunk in file.hunks for line in _changed(hunk)):
            code, number = (old, line.source_line_no) if line.is_removed else (new, line.target_line_no)
            name = code.function(number or 0)
            if name is not None and name in old.functions:
                found[f"{file.source}:{name}"] = None
    return tuple(found)


def function_of(found: tuple[Span, ...], line: int) -> str | None:
    """The outermost function around `line`, methods with their class; None outside of any function."""
    return next((span.name for span in found if not span.is_class and span.start <= line <= span.end), None)


class _Code:
    """Which function each line of a Python file belongs to."""

    def __init__(self, found: tuple[Span, ...], imports: set[int]) -> None:
        self._spans = found
        self._imports = imports
        self.functions = {span.name for span in found if not span.is_class}

    @classmethod
    def parse(cls, text: str) -> _Code | None:
        """Parses a file's text; None if it is not valid Python."""
        found = spans(text)
        if found is None:
            return None
        nodes = (node for node in ast.walk(ast.parse(text)) if isinstance(node, (ast.Import, ast.ImportFrom)))
        return cls(found, {line for node in nodes for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)})

    def function(self, line: int) -> str | None:
        """The function that a line belongs to; None for an import, or outside of any function."""
        return None if line in self._imports else function_of(self._spans, line)


def _changed(hunk: Hunk) -> Iterator[Line]:
    for line in hunk:
        text = line.value.strip()
        if (line.is_added or line.is_removed) and text and not text.startswith("#"):
            yield line

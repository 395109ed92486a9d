"""Gitignore patterns: which files of a workspace are hidden, read-only, or tests."""

from __future__ import annotations

from collections.abc import Iterable

from pathspec import GitIgnoreSpec

from gumshoe.errors import TaskError


class Patterns:
    """A list of gitignore patterns.

    Attributes:
        pairs: (hide or show, regular expression that matches from the start), for `Sandbox.walk` and the like.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        try:
            self._spec = GitIgnoreSpec.from_lines(lines)
        except ValueError as error:
            raise TaskError(f"a gitignore pattern is invalid: {error}") from None
        # pathspec searches: what it does not anchor, such as the pattern `*/`, may begin anywhere.
        self.pairs: list[tuple[bool, str]] = [
            (pattern.include, text if (text := pattern.regex.pattern).startswith("^") else f"(?s:.*){text}")
            for pattern in self._spec.patterns
            if pattern.include is not None and pattern.regex is not None
        ]

    def match(self, path: str) -> bool:
        """Whether the patterns match a path (relative, with `/`) or a folder that it is in."""
        return self._spec.match_file(path) or self._spec.match_file(f"{path}/")

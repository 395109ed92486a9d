"""A change that `whatif` made in memory, as the code that would stand in the file."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from gumshoe.tools.statements import Statement, statements_in
from gumshoe.tools.text import indentation

__all__ = ["with_change"]

ENDS = ("return", "break", "continue", "raise")
"""What leaves the block: nothing of the statement is left after it."""


def with_change(path: str, lines: Mapping[int, str], line: int, do: str) -> list[str] | None:
    """The lines, in their order, with a change made to the statement that begins at a line.

    Args:
        path: the file, for the parser's messages.
        lines: consecutive lines of it by number.
        line: the line that is changed.
        do: the change, see `whatif`.

    Returns:
        None where the change cannot be written as code in place of one statement: it runs before the statement, the
        statement has a block, or others share its line.
    """
    statement = _statement(path, lines, line)
    if statement is None:
        return None
    code = _code(statement, do.strip())
    if code is None:
        return None
    margin = lines[line][: indentation(lines[line])]
    new = [margin + each for each in code.splitlines()]
    before = [text for number, text in lines.items() if number < line]
    return before + new + [text for number, text in lines.items() if number > statement.end]


def _statement(path: str, lines: Mapping[int, str], line: int) -> Statement | None:
    """The statement that begins at a line; parsed without the lines above where these do not begin with a whole one."""
    for first in (min(lines), line) if line in lines else ():
        found = [each for each in statements_in(path, lines, first, max(lines)) if each.line == line]
        if len(found) == 1 and found[0].node is not None:
            return found[0]
    return None


def _code(statement: Statement, do: str) -> str | None:
    """What stands in place of a statement, or of its header."""
    node = statement.node
    if len(statement.on_line) != 1:
        return None
    word, _, rest = do.partition(" ")
    if do.lower() in ("true", "false"):
        word, rest = "condition", do.capitalize()
    if word == "condition":
        return f"{_keyword(statement)} {rest}:" if isinstance(node, (ast.If, ast.While)) else None
    if word == "iterate":
        is_loop = isinstance(node, (ast.For, ast.AsyncFor))
        return f"{_keyword(statement)} {ast.unparse(node.target)} in {rest}:" if is_loop else None
    if hasattr(node, "body") or hasattr(node, "cases"):
        return None
    if do == "skip":
        return "pass"
    if word == "replace":
        return rest
    return do if word in ENDS else None


def _keyword(statement: Statement) -> str:
    """The word that its first line begins with, such as `elif`; `async for` is one."""
    first = re.match(r"async\s+for|\w+", statement.code)
    assert first is not None
    return first[0]

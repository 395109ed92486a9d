"""The statements on some lines of a file, and how one reads with a change as `whatif` makes it in memory.

`vary` has the whole file. A policy has only the lines that it was shown, so a part of a function can be parsed, too.
"""

from __future__ import annotations

import ast
import re
import warnings
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from gumshoe.text import indentation

SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
ACTIVE = (ast.Call, ast.Await, ast.Yield, ast.YieldFrom)
"""Expressions that may do something besides having a value."""
ENDS = ("return", "break", "continue", "raise")
"""What leaves the block: nothing of the statement is left after it."""


@dataclass(frozen=True)
class Statement:
    """A statement, or the header of a compound one: where it is, both ends included, and what it is made of.

    `node` is None where the code around it could not be parsed. `names` are the
    parameters of the functions around it, and the variables that assignments and loops before it, or around it, bind.
    `on_line` are the outermost statements that begin on its line, without a `def` or `class` around it: itself, unless
    it shares the line with others. `on_line` is empty if the statement follows a header on its line and an `else` may
    come after the lines that were seen.
    """

    path: str
    line: int
    end: int
    code: str
    node: ast.stmt | None = None
    names: tuple[str, ...] = ()
    in_loop: bool = False
    on_line: tuple[ast.stmt, ...] = ()

    @property
    def place(self) -> str:
        """`PATH:LINE` of its first line."""
        return f"{self.path}:{self.line}"

    @property
    def does_nothing(self) -> bool:
        """Whether it is a value that is computed and dropped, without a call."""
        return isinstance(self.node, ast.Expr) and not isinstance(self.node.value, (ast.Constant, *ACTIVE))


def statements_in(path: str, lines: Mapping[int, str], start: int, end: int) -> list[Statement]:
    """The statements on lines `start` to `end`, as far as they were seen; docstrings do not count."""
    shown = [number for number in range(start, end + 1) if number in lines]
    runs = [number for number in shown if number - 1 not in shown]
    lasts = [number for number in shown if number + 1 not in shown]
    return [
        statement
        for first, last in zip(runs, lasts, strict=True)
        for statement in _statements_of_run(path, lines, first, last, is_end=last == end)
    ]


def _statements_of_run(path: str, lines: Mapping[int, str], first: int, last: int, *, is_end: bool) -> list[Statement]:
    """The statements of consecutive lines. `is_end`: nothing that belongs to them follows."""
    texts = [lines[number] for number in range(first, last + 1)]
    parsed = _parse(texts)
    if parsed is None and len(texts) > 1:  # perhaps only some lines are in syntax newer than this Python's
        numbers = range(first, last + 1)
        return [found for line in numbers for found in _statements_of_run(path, lines, line, line, is_end=False)]
    if parsed is None:
        return [
            Statement(path, number, number, text.strip())
            for number, text in enumerate(texts, first)
            if text.strip() and not text.lstrip().startswith(("#", ")", "]", "}"))
        ]
    body, opened, cut = parsed
    shift = first - 1 - opened
    return [
        replace(
            found, path=path, line=found.line + shift, end=found.end + shift, code=lines[found.line + shift].strip()
        )
        for found in _below(body, (), in_loop=False, header=None, is_whole=is_end and not cut)
        if found.line > opened
    ]


def _parse(lines: Sequence[str]) -> tuple[list[ast.stmt], int, int] | None:
    """The lines as a tree, how many lines were put before them, and how many were left out at the end.

    For each smaller indentation that follows, a line that opens a block is put before them, so that part of a function
    can be parsed. Lines at the end that open something are left out.
    """
    indents = [indentation(line) for line in lines if line.strip()]
    first = indents[0] if indents else 0
    openers = [" " * indent + "if True:" for indent in sorted({0, *indents}) if indent < first]
    for cut in range(min(len(lines), 4)):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SyntaxWarning)
                return ast.parse("\n".join([*openers, *lines[: len(lines) - cut]])).body, len(openers), cut
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
    return None


def _below(
    body: Sequence[ast.stmt], names: tuple[str, ...], *, in_loop: bool, header: Statement | None, is_whole: bool
) -> Iterator[Statement]:
    """The statements of a block, outer before inner, without path and code.

    `header` is that of the statement around it; `is_whole` says that all of that statement was seen, with its `else`.
    """
    lines = [node.lineno for node in body]
    for index, node in enumerate(body):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            names = tuple(dict.fromkeys([*names, *_parameters(node)]))
        blocks = blocks_of(node)
        first = min([block[0].lineno for block in blocks if block], default=0)
        last = max(node.lineno, first - 1) if blocks else node.end_lineno or node.lineno
        on_line = tuple(body[lines.index(node.lineno) : bisect_right(lines, node.lineno)])
        if header is not None and header.line == node.lineno and not isinstance(header.node, SCOPES):
            on_line = header.on_line if is_whole else ()
        statement = Statement("", node.lineno, last, "", node, names, in_loop, on_line)
        if not (index == 0 and _is_text(node)):
            yield statement
        names = tuple(dict.fromkeys([*names, *_assigned(node)]))
        looped = isinstance(node, (ast.For, ast.AsyncFor, ast.While)) or (in_loop and not isinstance(node, SCOPES))
        for block in blocks:
            followed = is_whole or index + 1 < len(body)
            yield from _below(block, names, in_loop=looped, header=statement, is_whole=followed)


def blocks_of(node: ast.AST) -> list[list[ast.stmt]]:
    """The lists of statements in a statement or module, in the order of the code."""
    fields = [getattr(node, name, None) for name in ("body", "orelse", "finalbody")]
    inner = [item.body for name in ("handlers", "cases") for item in getattr(node, name, ())]
    return [block for block in (*fields, *inner) if isinstance(block, list) and block]


def _parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    arguments = node.args
    return [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]


def _assigned(node: ast.stmt) -> list[str]:
    """The names that an assignment or a loop binds; other statements that bind names are left out."""
    roots: list[ast.AST] = []
    if isinstance(node, ast.Assign):
        roots = [*node.targets]
    elif isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.For, ast.AsyncFor)):
        roots = [node.target]
    return [name.id for root in roots for name in ast.walk(root) if isinstance(name, ast.Name)]


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def with_change(path: str, lines: Mapping[int, str], line: int, do: str) -> list[str] | None:
    """Consecutive lines of a file, by number, with a change made to the statement that begins at one of them.

    None where the change (see `whatif`) cannot be written as code in place of one statement: it runs before the
    statement, the statement has a block, or others share its line.
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

"""Functions and classes of a Python file, by the lines they span."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

__all__ = ["MODULE", "Span", "enclosing", "innermost", "spans"]

LONGEST = 2_000_000
MODULE = "<module>"
"""What lines outside any function or class belong to."""


@dataclass(frozen=True)
class Span:
    """A function or class with its qualified name; both lines included, decorators too."""

    name: str
    start: int
    end: int
    is_class: bool = False


def spans(source: str) -> tuple[Span, ...] | None:
    """All functions and classes of `source`, outer before inner; None where it is no Python that can be parsed, or has
    more than two million characters.
    """
    if len(source) > LONGEST:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            tree = ast.parse(source)
        return tuple(_below(tree, ""))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def enclosing(found: tuple[Span, ...], line: int) -> str:
    """The qualified name of the innermost function or class around `line`."""
    around = innermost(found, line)
    return MODULE if around is None else around.name


def innermost(found: Sequence[Span], line: int) -> Span | None:
    """The innermost span around `line`, of spans that come outer before inner; None where there is none."""
    return next((span for span in reversed(found) if span.start <= line <= span.end), None)


def _below(node: ast.AST, prefix: str) -> Iterator[Span]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            name = f"{prefix}{child.name}"
            start = min([child.lineno, *(decorator.lineno for decorator in child.decorator_list)])
            yield Span(name, start, child.end_lineno or child.lineno, isinstance(child, ast.ClassDef))
            yield from _below(child, f"{name}.")
        else:
            yield from _below(child, prefix)

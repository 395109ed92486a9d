"""The names of a Python file: what it defines for others, and what it uses without defining it."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Sequence

__all__ = ["offered_names", "unknown_names"]

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# What every module has besides the builtins.
GIVEN = {*dir(builtins), "__file__", "__class__", "__path__"}


def offered_names(tree: ast.Module) -> set[str]:
    """Public functions, their parameters, classes and variables, qualified; a leading underscore makes one private."""
    return set(_offered(tree.body, ""))


def _offered(body: Sequence[ast.stmt], prefix: str) -> Iterator[str]:
    for node in body:
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            if node.name.startswith("_") and node.name != "__init__":
                continue
            yield f"{prefix}{node.name}"
            if isinstance(node, ast.ClassDef):
                yield from _offered(node.body, f"{prefix}{node.name}.")
            else:
                yield from (f"{prefix}{node.name}({name})" for name in _parameters(node.args))
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = (target.id for target in targets if isinstance(target, ast.Name))
            yield from (f"{prefix}{name}" for name in names if not name.startswith("_"))


def _parameters(arguments: ast.arguments) -> list[str]:
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    return [argument.arg for argument in every if argument is not None]


def unknown_names(tree: ast.Module) -> set[str]:
    """Names that are read but bound nowhere in the file; none where an `import *` could bind any of them."""
    bound, read = set(GIVEN), set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (read if isinstance(node.ctx, ast.Load) else bound).add(node.id)
        elif isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            bound.add(node.name)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.alias):
            if node.name == "*":
                return set()
            bound.add(node.asname or node.name.partition(".")[0])
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            bound.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            bound.add(node.rest)
    return read - bound

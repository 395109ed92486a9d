"""Syntax trees of Python source: as this Python parses it, or as that of a project has."""

from __future__ import annotations

import ast
import functools
import json
import threading
import warnings
from typing import Any

_PARSER = threading.Lock()
"""Several verdicts are made at a time, and CPython 3.11 counts the depth of a tree in one place for all threads."""


def parse_python(source: bytes) -> ast.Module:
    """The syntax tree of Python source, in the encoding that it declares. Raises ValueError: it cannot be parsed."""
    try:
        with _PARSER, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError(str(error)) from None


def read_tree(data: bytes) -> ast.Module:
    """The syntax tree that `env/inside/verdict/trees` has written. Raises ValueError: it is none.

    Nodes that this Python does not know have types of their own.
    """
    try:
        written: list[tuple[str, dict[str, Any]]] = json.loads(data)
        nodes = [_empty_node(kind, tuple(fields)) for kind, fields in written]

        def value_of(value: Any) -> Any:
            match value:
                case {"node": place}:
                    return nodes[place]
                case {"bytes": text}:
                    return text.encode("latin-1")
                case list():
                    return [value_of(each) for each in value]
                case _:
                    return value

        for node, (_, fields) in zip(nodes, written, strict=True):
            for name, value in fields.items():
                setattr(node, name, value_of(value))
        tree = nodes[0]
    except (TypeError, LookupError, AttributeError, RecursionError, UnicodeEncodeError) as error:
        raise ValueError(f"no syntax tree: {error}") from None
    if not isinstance(tree, ast.Module):
        raise ValueError("no syntax tree: it has no module")
    return tree


def _empty_node(kind: str, fields: tuple[str, ...]) -> ast.AST:
    """A node, in which fields that its own Python does not know are empty."""
    known = getattr(ast, kind, None)
    type_ = known if isinstance(known, type) and issubclass(known, ast.AST) else _unknown_type(kind, fields)
    node = ast.AST.__new__(type_)
    for name in type_._fields:
        if not hasattr(node, name):
            setattr(node, name, [])
    return node


@functools.cache
def _unknown_type(kind: str, fields: tuple[str, ...]) -> type[ast.AST]:
    return type(kind, (ast.AST,), {"_fields": fields})

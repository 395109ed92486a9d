"""The wrong exception is raised or caught."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from gumshoe.env.synth.mutation import Mutation, Operator, replace
from gumshoe.env.synth.source import ParsedFile

__all__ = ["CHANGED_EXCEPTION"]

OTHERS = {
    "AttributeError": ("TypeError", "KeyError"),
    "FileNotFoundError": ("PermissionError",),
    "IndexError": ("KeyError", "ValueError"),
    "KeyError": ("IndexError", "AttributeError"),
    "LookupError": ("ValueError",),
    "NotImplementedError": ("ValueError",),
    "OSError": ("ValueError",),
    "OverflowError": ("ValueError",),
    "RuntimeError": ("ValueError",),
    "StopIteration": ("IndexError",),
    "TimeoutError": ("ValueError",),
    "TypeError": ("ValueError",),
    "ValueError": ("TypeError", "KeyError"),
    "ZeroDivisionError": ("OverflowError",),
}


def _propose(node: cst.ExceptHandler | cst.Raise, source: ParsedFile) -> Iterator[Mutation]:
    if isinstance(node, cst.Raise):
        raised = node.exc.func if isinstance(node.exc, cst.Call) else node.exc
        yield from _renamed(raised)
    elif isinstance(node.type, cst.Tuple):
        for dropped in node.type.elements:
            rest = [item for item in node.type.elements if item is not dropped]
            yield replace(node.type, node.type.with_changes(elements=rest))
    else:
        yield from _renamed(node.type)


def _renamed(name: cst.BaseExpression | None) -> Iterator[Mutation]:
    if isinstance(name, cst.Name):
        for other in OTHERS.get(name.value, ()):
            yield replace(name, name.with_changes(value=other))


CHANGED_EXCEPTION = Operator(
    "changed_exception", "the wrong exception is raised or caught", (cst.ExceptHandler, cst.Raise), _propose
)

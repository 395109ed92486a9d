"""The right kind of thing, but the wrong one: variables, attributes, functions and exceptions that are confused."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from gumshoe.env.bugs.operators.mutation import Mutation, ParsedFile, called, operator, replace, without_each

READERS = (
    cst.Arg,
    cst.Attribute,
    cst.BinaryOperation,
    cst.BooleanOperation,
    cst.Comparison,
    cst.ComparisonTarget,
    cst.FormattedStringExpression,
    cst.Index,
    cst.Return,
    cst.Slice,
    cst.Subscript,
    cst.UnaryOperation,
)
CONSTANTS = ("None", "True", "False", "self", "cls")


@operator(cst.Name)
def wrong_variable(node: cst.Name, source: ParsedFile) -> Iterator[Mutation]:
    """Another variable of the function is used."""
    function = source.function(node)
    if function is None or node.value in CONSTANTS or not _is_read(node, source):
        return
    bound = _bound_names(function, source)
    if node.value in bound:
        line = source.span(node).start
        for name, first in bound.items():
            if name != node.value and first < line:
                yield replace(node, node.with_changes(value=name))


def _is_read(node: cst.Name, source: ParsedFile) -> bool:
    parent = source.parent(node)
    if isinstance(parent, cst.Attribute):
        return parent.value is node and not isinstance(source.parent(parent), cst.AssignTarget)
    if isinstance(parent, cst.Subscript):
        return not isinstance(source.parent(parent), cst.AssignTarget | cst.Del)
    if isinstance(parent, cst.Arg):
        return parent.keyword is not node
    return isinstance(parent, READERS)


def _bound_names(function: cst.FunctionDef, source: ParsedFile) -> dict[str, int]:
    """The function's parameters and simple local variables, each with the line from which it has a value."""
    names: dict[str, int] = {}
    for node in source.inside(function, cst.Name):
        parent = source.parent(node)
        if isinstance(parent, cst.Param) and parent.name is node and source.function(parent) is function:
            names.setdefault(node.value, source.span(function).start)
        elif isinstance(parent, cst.AssignTarget | cst.For) and parent.target is node:
            names.setdefault(node.value, source.span(node).start)
    return {name: line for name, line in names.items() if name not in CONSTANTS}


@operator(cst.Attribute)
def wrong_attribute(node: cst.Attribute, source: ParsedFile) -> Iterator[Mutation]:
    """Another attribute of the object is used."""
    owner = source.enclosing(node, cst.ClassDef)
    if owner is None or not _is_own(node) or isinstance(source.parent(node), cst.AssignTarget | cst.Call):
        return
    for name in _own_attributes(owner, source):
        if name != node.attr.value:
            yield replace(node.attr, node.attr.with_changes(value=name))


def _is_own(node: cst.Attribute) -> bool:
    return isinstance(node.value, cst.Name) and node.value.value == "self"


def _own_attributes(owner: cst.ClassDef, source: ParsedFile) -> list[str]:
    """What the methods assign to `self`, in order of appearance."""
    targets = [target.target for target in source.inside(owner, cst.AssignTarget)]
    return list(dict.fromkeys(item.attr.value for item in targets if isinstance(item, cst.Attribute) and _is_own(item)))


CONFUSED = (
    ("min", "max"),
    ("any", "all"),
    ("startswith", "endswith"),
    ("lower", "upper"),
    ("lstrip", "rstrip"),
    ("floor", "ceil"),
    ("keys", "values"),
    ("append", "extend"),
    ("appendleft", "append"),
    ("popleft", "pop"),
    ("find", "rfind"),
    ("index", "rindex"),
    ("split", "rsplit"),
    ("partition", "rpartition"),
    ("union", "intersection"),
    ("difference", "symmetric_difference"),
    ("issubset", "issuperset"),
    ("heappush", "append"),
    ("bisect_left", "bisect_right"),
    ("ljust", "rjust"),
    ("sorted", "list"),
    ("round", "int"),
    ("sum", "len"),
    ("set", "list"),
)
ONE_WAY = ("sorted", "round", "sum", "set", "heappush", "appendleft", "popleft")


@operator(cst.Call)
def wrong_call(node: cst.Call, source: ParsedFile) -> Iterator[Mutation]:
    """A function is taken for a similar one."""
    name = called(node)
    if name is None:
        return
    for one, other in CONFUSED:
        if name.value == one:
            yield replace(name, name.with_changes(value=other))
        elif name.value == other and one not in ONE_WAY:
            yield replace(name, name.with_changes(value=one))


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


@operator(cst.ExceptHandler, cst.Raise)
def changed_exception(node: cst.ExceptHandler | cst.Raise, source: ParsedFile) -> Iterator[Mutation]:
    """The wrong exception is raised or caught."""
    if isinstance(node, cst.Raise):
        raised = node.exc.func if isinstance(node.exc, cst.Call) else node.exc
        yield from _renamed(raised)
    elif isinstance(node.type, cst.Tuple):
        for rest in without_each(node.type.elements):
            yield replace(node.type, node.type.with_changes(elements=rest))
    else:
        yield from _renamed(node.type)


def _renamed(name: cst.BaseExpression | None) -> Iterator[Mutation]:
    if isinstance(name, cst.Name):
        for other in OTHERS.get(name.value, ()):
            yield replace(name, name.with_changes(value=other))

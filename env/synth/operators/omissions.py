"""Missing care: for special cases, untidy input, errors."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from gumshoe.env.synth.build import parenthesized, pick_name, unwrapped, without_statement
from gumshoe.env.synth.mutation import Mutation, Operator, replace
from gumshoe.env.synth.source import ParsedFile

__all__ = ["MISSING_GUARD", "MISSING_HANDLER", "MISSING_NORMALIZATION", "is_default", "is_guard"]

LEAVES = (cst.Return, cst.Raise, cst.Continue, cst.Break)


def is_guard(node: cst.If) -> bool:
    """Whether an `if` without `else` turns a case away: `if x is None: return`."""
    last = _last(node.body)
    return node.orelse is None and isinstance(last, LEAVES)


def is_default(node: cst.If) -> bool:
    """Whether an `if` without `else` does nothing but replace the value it looks at: `if x is None: x = []`."""
    only = _last(node.body)
    if node.orelse is not None or len(node.body.body) != 1 or not isinstance(only, cst.Assign):
        return False
    name = _assigned(only)
    return name is not None and _mentions(node.test, name)


def _last(body: cst.BaseSuite) -> cst.CSTNode | None:
    line = body if isinstance(body, cst.SimpleStatementSuite) else body.body[-1]
    return line.body[-1] if isinstance(line, cst.SimpleStatementSuite | cst.SimpleStatementLine) else None


def _assigned(node: cst.Assign) -> str | None:
    """The one plain name that an assignment binds."""
    target = node.targets[0].target
    return target.value if len(node.targets) == 1 and isinstance(target, cst.Name) else None


def _mentions(node: cst.CSTNode, name: str) -> bool:
    return pick_name(node, (name,)) is not None or any(_mentions(child, name) for child in node.children)


def _guard(node: cst.If, source: ParsedFile) -> Iterator[Mutation]:
    block = source.parent(node)
    if isinstance(block, cst.IndentedBlock) and source.function(node) is not None and is_guard(node):
        yield replace(block, without_statement(block, node))


MISSING_GUARD = Operator("missing_guard", "a special case is not turned away first", (cst.If,), _guard)

METHODS = ("casefold", "expanduser", "expandtabs", "lower", "lstrip", "resolve", "rstrip", "strip", "upper")
FUNCTIONS = ("abs", "abspath", "bool", "bytes", "expanduser", "float", "int", "normcase", "normpath", "realpath", "str")


def _normalization(node: cst.SimpleStatementLine | cst.If | cst.Call, source: ParsedFile) -> Iterator[Mutation]:
    if isinstance(node, cst.Call):
        yield from _raw_value(node, source)
        return
    block = source.parent(node)
    if isinstance(block, cst.IndentedBlock) and source.function(node) is not None and _normalizes(node):
        yield replace(block, without_statement(block, node))


def _normalizes(node: cst.SimpleStatementLine | cst.If) -> bool:
    if isinstance(node, cst.If):
        return is_default(node)
    only = node.body[0]
    return len(node.body) == 1 and isinstance(only, cst.Assign) and _is_made_from_itself(only)


def _is_made_from_itself(node: cst.Assign) -> bool:
    """Whether a name gets a tidier form of its own value: `x = x.strip()`, `x = str(x)`, `x = x or 1`."""
    name, value = _assigned(node), node.value
    if name is None:
        return False
    if isinstance(value, cst.BooleanOperation):
        return pick_name(value.left, (name,)) is not None
    if isinstance(value, cst.IfExp):
        return any(pick_name(side, (name,)) is not None for side in (value.body, value.orelse))
    while isinstance(value, cst.Call):
        if value.args and pick_name(value.args[0].value, (name,)):
            return True
        if not isinstance(value.func, cst.Attribute):
            return False
        value = value.func.value
        if pick_name(value, (name,)):
            return True
    return False


def _raw_value(node: cst.Call, source: ParsedFile) -> Iterator[Mutation]:
    """The value as it comes, where a call would tidy it."""
    assign = source.parent(node)
    if isinstance(assign, cst.Assign) and _is_made_from_itself(assign):
        return
    func = node.func
    if isinstance(func, cst.Attribute) and pick_name(func.attr, METHODS):
        yield replace(node, func.value)
    name = func.attr if isinstance(func, cst.Attribute) else func
    if pick_name(name, FUNCTIONS) and len(node.args) == 1 and not node.args[0].star and not node.args[0].keyword:
        yield replace(node, parenthesized(node.args[0].value))


MISSING_NORMALIZATION = Operator(
    "missing_normalization",
    "a value is used as it comes, without being tidied or replaced first",
    (cst.SimpleStatementLine, cst.If, cst.Call),
    _normalization,
)


def _handler(node: cst.Try | cst.With, source: ParsedFile) -> Iterator[Mutation]:
    if isinstance(node, cst.Try) and len(node.handlers) > 1:
        for dropped in node.handlers:
            yield replace(node, node.with_changes(handlers=[item for item in node.handlers if item is not dropped]))
        return
    if isinstance(node, cst.Try) and node.handlers and node.finalbody is not None:
        if node.orelse is None:
            yield replace(node, node.with_changes(handlers=[]))
        return
    block = source.parent(node)
    if not isinstance(block, cst.IndentedBlock) or source.function(node) is None:
        return
    if isinstance(node, cst.With):
        if _suppresses(node):
            yield replace(block, unwrapped(block, node, node.body))
    elif node.handlers:
        bodies = (node.body,) if node.orelse is None else (node.body, node.orelse.body)
        yield replace(block, unwrapped(block, node, *bodies))


def _suppresses(node: cst.With) -> bool:
    call = node.items[0].item
    if len(node.items) > 1 or not isinstance(call, cst.Call):
        return False
    name = call.func.attr if isinstance(call.func, cst.Attribute) else call.func
    return pick_name(name, ("suppress",)) is not None


MISSING_HANDLER = Operator("missing_handler", "an exception is not handled", (cst.Try, cst.With), _handler)

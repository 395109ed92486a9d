"""Missing care (for special cases, untidy input, errors) and missing code."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from gumshoe.env.bugs.operators.mutation import (
    Mutation,
    ParsedFile,
    called,
    operator,
    parenthesized,
    pick_name,
    removed,
    replace,
    unwrapped,
    without_each,
)

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


@operator(cst.If)
def missing_guard(node: cst.If, source: ParsedFile) -> Iterator[Mutation]:
    """A special case is not turned away first."""
    if is_guard(node):
        yield from removed(node, source)


METHODS = ("casefold", "expanduser", "expandtabs", "lower", "lstrip", "resolve", "rstrip", "strip", "upper")
FUNCTIONS = ("abs", "abspath", "bool", "bytes", "expanduser", "float", "int", "normcase", "normpath", "realpath", "str")


@operator(cst.SimpleStatementLine, cst.If, cst.Call)
def missing_normalization(node: cst.SimpleStatementLine | cst.If | cst.Call, source: ParsedFile) -> Iterator[Mutation]:
    """A value is used as it comes, without being tidied or replaced first."""
    if isinstance(node, cst.Call):
        yield from _raw_value(node, source)
    elif is_default(node) if isinstance(node, cst.If) else _tidies(node):
        yield from removed(node, source)


def _tidies(node: cst.SimpleStatementLine) -> bool:
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
    if (
        pick_name(called(node), FUNCTIONS)
        and len(node.args) == 1
        and not node.args[0].star
        and not node.args[0].keyword
    ):
        yield replace(node, parenthesized(node.args[0].value))


@operator(cst.Try, cst.With)
def missing_handler(node: cst.Try | cst.With, source: ParsedFile) -> Iterator[Mutation]:
    """An exception is not handled."""
    if isinstance(node, cst.Try) and len(node.handlers) > 1:
        for rest in without_each(node.handlers):
            yield replace(node, node.with_changes(handlers=rest))
        return
    if isinstance(node, cst.Try) and node.handlers and node.finalbody is not None:
        if node.orelse is None:
            yield replace(node, node.with_changes(handlers=[]))
        return
    if isinstance(node, cst.With):
        if _suppresses(node):
            yield from unwrapped(node, source, node.body)
    elif node.handlers:
        bodies = (node.body,) if node.orelse is None else (node.body, node.orelse.body)
        yield from unwrapped(node, source, *bodies)


def _suppresses(node: cst.With) -> bool:
    call = node.items[0].item
    return len(node.items) == 1 and isinstance(call, cst.Call) and pick_name(called(call), ("suppress",)) is not None


@operator(cst.SimpleStatementLine)
def dropped_statement(node: cst.SimpleStatementLine, source: ParsedFile) -> Iterator[Mutation]:
    """A statement is missing."""
    if _acts(node.body[0]):
        yield from removed(node, source)


def _acts(statement: cst.BaseSmallStatement) -> bool:
    """Whether it changes some state: leaving out what binds a local name would only give a NameError."""
    if isinstance(statement, cst.Assign):
        return not any(isinstance(item.target, cst.Name | cst.Tuple) for item in statement.targets)
    if isinstance(statement, cst.Expr):
        return isinstance(statement.value, cst.Call | cst.Await)
    return isinstance(statement, cst.AugAssign | cst.Del)


@operator(cst.If)
def missing_branch(node: cst.If, source: ParsedFile) -> Iterator[Mutation]:
    """A case is not handled."""
    if isinstance(node.orelse, cst.Else):
        yield replace(node, node.with_changes(orelse=None))
    elif isinstance(node.orelse, cst.If):
        yield replace(node, node.with_changes(orelse=node.orelse.orelse))
    if isinstance(node.orelse, cst.If) and source.block(node) is not None:
        yield replace(node, node.orelse.with_changes(leading_lines=node.leading_lines))
    elif isinstance(node.orelse, cst.Else):
        yield from unwrapped(node, source, node.orelse.body)
    elif node.orelse is None and not is_guard(node) and not is_default(node):
        yield from removed(node, source)


@operator(cst.Return)
def missing_return(node: cst.Return, source: ParsedFile) -> Iterator[Mutation]:
    """A value is computed and not returned."""
    if node.value is not None and not (isinstance(node.value, cst.Name) and node.value.value == "None"):
        yield replace(node, cst.Expr(node.value, semicolon=node.semicolon))


@operator(cst.Call)
def dropped_argument(node: cst.Call, source: ParsedFile) -> Iterator[Mutation]:
    """An argument is left to its default."""
    if len(node.args) < 2 or node.args[-1].star:
        return
    last = node.args[-2].with_changes(comma=node.args[-1].comma)
    yield replace(node, node.with_changes(args=[*node.args[:-2], last]))


@operator(cst.Await)
def removed_await(node: cst.Await, source: ParsedFile) -> Iterator[Mutation]:
    """A coroutine is not awaited."""
    yield replace(node, node.expression)


@operator(cst.Break, cst.Continue)
def loop_control(node: cst.Break | cst.Continue, source: ParsedFile) -> Iterator[Mutation]:
    """A loop ends too early, or too late."""
    other = cst.Continue if isinstance(node, cst.Break) else cst.Break
    for kind in (other, cst.Pass):
        yield replace(node, kind(semicolon=node.semicolon))

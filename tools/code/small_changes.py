"""What `whatif` may try at a statement: small changes, each with the probability that it repairs a wrong one.

Force a branch, negate a condition, move a bound by one, use another operator or another name, leave something out.
(Y. Jia, M. Harman: An Analysis and Survey of the Development of Mutation Testing, TSE 2011, lists the usual ones.) If
a change at one place turns failing tests into passing ones, the place matters: S. Moon et al., Ask the Mutants,
ICST 2014.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from gumshoe.tools.code.statements import Statement, blocks_of

SWAPPED: dict[type[ast.AST], tuple[type[ast.AST], ...]] = {
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.GtE),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.LtE),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.And: (ast.Or,),
    ast.Or: (ast.And,),
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div, ast.FloorDiv),
    ast.Div: (ast.Mult, ast.FloorDiv),
    ast.FloorDiv: (ast.Div, ast.Mult),
    ast.Mod: (ast.FloorDiv,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
}
OPPOSED = (ast.Eq, ast.NotEq, ast.In, ast.NotIn, ast.Is, ast.IsNot)
"""Operators whose counterpart means the opposite."""
PAIRS = [
    ("min", "max"),
    ("any", "all"),
    ("append", "extend"),
    ("lower", "upper"),
    ("startswith", "endswith"),
    ("lstrip", "rstrip"),
    ("find", "rfind"),
    ("keys", "values"),
    ("floor", "ceil"),
    ("add", "update"),
    ("split", "rsplit"),
    ("partition", "rpartition"),
    ("ljust", "rjust"),
    ("index", "rindex"),
    ("list", "set"),
    ("sorted", "reversed"),
    ("popleft", "pop"),
    ("appendleft", "append"),
    ("isinstance", "issubclass"),
    ("getattr", "hasattr"),
    ("int", "float"),
    ("str", "repr"),
]
OTHER_NAMES = {**{second: first for first, second in reversed(PAIRS)}, **dict(PAIRS)}
OPERATOR, NUMBER, PART, FORCED, LEFT_OUT, NAME, COPY = 0.25, 0.15, 0.2, 0.08, 0.05, 0.04, 0.05
"""How likely a change of each kind is to repair a statement that is wrong."""
MOST_NAMES = 3
LONGEST_LIST = 4
"""The most arguments or elements of which two are swapped."""


@dataclass(frozen=True)
class WhatifChange:
    """What `whatif` does at a statement. `power`: how likely that is to repair the statement if it is wrong, 0 to 1."""

    path: str
    line: int
    do: str
    power: float


def changes_at(statement: Statement) -> list[WhatifChange]:
    """The changes worth a try, best first; none where the statement cannot be changed in memory."""
    node = statement.node
    if node is None or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import)):
        return []
    copies: dict[int, Any] = {}
    line = ast.Module(body=copy.deepcopy(list(statement.on_line), copies), type_ignores=[])
    own = copies.get(id(node))
    if own is None:
        return []
    found: dict[str, float] = {}
    for proposed, power in _proposed(statement, own):
        do = proposed if line.body == [own] else _of_line(proposed, own, line)
        if do is not None:
            found.setdefault(do, power)
    made = [WhatifChange(statement.path, statement.line, do, power) for do, power in found.items()]
    return sorted(made, key=lambda change: -change.power)


def _of_line(do: str, node: ast.stmt, line: ast.Module) -> str | None:
    """The change of one of the statements on a line as a change of the whole line, which is what `whatif` changes.

    None where the line does not hold all of its statements, such as an `if` with an `else` below.
    """
    word, _, rest = do.partition(" ")
    new = ast.parse(rest or "pass").body if word in ("skip", "replace") else [*ast.parse(do).body, node]
    block = next(block for parent in ast.walk(line) for block in blocks_of(parent) if node in block)
    index = block.index(node)
    block[index : index + 1] = new
    code = ast.unparse(line)
    block[index : index + len(new)] = [node]
    joined = re.sub(r"\n\s*", "; ", code).replace(":; ", ": ")
    try:
        is_same = ast.dump(ast.parse(joined)) == ast.dump(ast.parse(code))
    except SyntaxError:
        return None
    return f"replace {joined}" if is_same else None


def _proposed(statement: Statement, node: ast.stmt) -> Iterator[tuple[str, float]]:
    if isinstance(node, (ast.If, ast.While)):
        if not _is_turned_round(node.test):
            yield f"condition not ({ast.unparse(node.test)})", OPERATOR
        for code, power in _altered(node, "test", statement.names):
            yield f"condition {code}", power
        yield "true", FORCED
        yield "false", FORCED
    elif isinstance(node, (ast.For, ast.AsyncFor)):
        for code, power in _altered(node, "iter", statement.names):
            yield f"iterate {code}", power
    elif not hasattr(node, "body"):
        for field in ("value", "exc", "test", "op"):
            if isinstance(getattr(node, field, None), ast.AST):
                for code, power in _altered(node, field, statement.names, whole=True):
                    yield f"replace {code}", power
        yield from _of_simple(statement, node)
    if statement.in_loop and not isinstance(node, (ast.Break, ast.Continue, ast.Pass)):
        yield "break", LEFT_OUT / 2
        yield "continue", LEFT_OUT / 2


def _is_turned_round(condition: ast.expr) -> bool:
    """Whether another change, a swapped operator or an omitted `not`, already negates a condition."""
    if isinstance(condition, ast.Compare):
        return len(condition.ops) == 1 and isinstance(condition.ops[0], OPPOSED)
    return isinstance(condition, ast.UnaryOp) and isinstance(condition.op, ast.Not)


def _of_simple(statement: Statement, node: ast.stmt) -> Iterator[tuple[str, float]]:
    """The changes of a simple statement as a whole."""
    if isinstance(node, ast.Return):
        if (
            node.value is not None
            and isinstance(node.value, (ast.Compare, ast.BoolOp, ast.Call, ast.Name, ast.UnaryOp))
            and not _is_turned_round(node.value)
        ):
            yield f"replace return not ({ast.unparse(node.value)})", NUMBER / 2
        if node.value is not None:
            yield "replace pass", LEFT_OUT
    elif isinstance(node, ast.Expr):
        if not isinstance(node.value, (ast.Yield, ast.YieldFrom, ast.Await)):
            yield f"return {ast.unparse(node.value)}", OPERATOR if statement.does_nothing else OPERATOR / 2
        yield "skip", LEFT_OUT
    elif isinstance(node, (ast.Break, ast.Continue)):
        yield "replace continue" if isinstance(node, ast.Break) else "replace break", OPERATOR
        yield "skip", NUMBER
    elif isinstance(node, ast.Pass):
        if statement.in_loop:
            yield "replace break", OPERATOR
            yield "replace continue", NUMBER
    elif isinstance(node, ast.AugAssign):
        yield f"replace {ast.unparse(node.target)} = {ast.unparse(node.value)}", LEFT_OUT
        yield "skip", LEFT_OUT
    elif not isinstance(node, (ast.Global, ast.Nonlocal)):
        yield "skip", LEFT_OUT


def _altered(owner: ast.stmt, field: str, names: Sequence[str], *, whole: bool = False) -> Iterator[tuple[str, float]]:
    """The code of a field, or of the whole statement, with one thing in the field changed, for each such thing."""
    for parent, name, index, child in _children(owner, field):
        for other, power in _alternatives(child, parent, names):
            _put(parent, name, index, other)
            try:
                code = ast.unparse(ast.fix_missing_locations(owner if whole else getattr(owner, field)))
            except ValueError:  # an f-string that older Pythons have no quotes for
                continue
            finally:
                _put(parent, name, index, child)
            yield code, power


def _children(owner: ast.AST, field: str) -> Iterator[tuple[ast.AST, str, int | None, ast.AST]]:
    """The nodes below a field, each with the node, the field and the place in a list that hold it."""
    value = getattr(owner, field)
    for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
        if not isinstance(child, ast.AST):
            continue
        yield owner, field, index, child
        for name in child._fields:
            if isinstance(getattr(child, name, None), (ast.AST, list)):
                yield from _children(child, name)


def _put(parent: ast.AST, name: str, index: int | None, child: ast.AST) -> None:
    if index is None:
        setattr(parent, name, child)
    else:
        getattr(parent, name)[index] = child


def _alternatives(node: ast.AST, parent: ast.AST, names: Sequence[str]) -> Iterator[tuple[ast.AST, float]]:
    for other in SWAPPED.get(type(node), ()):
        yield other(), OPERATOR
    if isinstance(node, ast.BoolOp) and len(node.values) == 2:
        yield node.values[0], PART / 2
        yield node.values[1], PART / 2
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub)):
        yield node.operand, OPERATOR
    elif isinstance(node, ast.IfExp):
        yield ast.IfExp(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse), OPERATOR
    elif isinstance(node, ast.Constant):
        yield from ((ast.Constant(value), power) for value, power in _other_values(node.value))
    elif isinstance(node, ast.Call):
        yield from ((ast.Call(node.func, args, node.keywords), power) for args, power in _swapped(node.args))
    elif isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Load):
        yield from ((ast.Tuple(elements, ast.Load()), power) for elements, power in _swapped(node.elts))
    elif isinstance(node, ast.Attribute) and node.attr in OTHER_NAMES:
        yield ast.Attribute(node.value, OTHER_NAMES[node.attr], node.ctx), PART
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        yield from _other_names(node, parent, names)
    if _is_bound(node, parent):
        one = ast.Constant(1)
        yield ast.BinOp(node, ast.Add(), one), NUMBER / 2
        yield ast.BinOp(node, ast.Sub(), one), NUMBER / 2
    if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and isinstance(parent, (ast.Return, ast.Assign)):
        yield ast.parse(f"__import__('copy').copy({ast.unparse(node)})", mode="eval").body, COPY


def _swapped(values: Sequence[ast.expr]) -> Iterator[tuple[list[ast.expr], float]]:
    """The values with two neighbors swapped; none for long lists, whose order seldom matters."""
    if len(values) > LONGEST_LIST or any(isinstance(value, ast.Starred) for value in values):
        return
    for index in range(len(values) - 1):
        first, second = values[index : index + 2]
        yield [*values[:index], second, first, *values[index + 2 :]], PART / (len(values) - 1)


def _other_values(value: object) -> Iterator[tuple[int, float]]:
    if isinstance(value, bool):
        yield not value, OPERATOR
    elif isinstance(value, int):
        yield value + 1, NUMBER
        yield value - 1, NUMBER


def _other_names(node: ast.Name, parent: ast.AST, names: Sequence[str]) -> Iterator[tuple[ast.AST, float]]:
    if node.id in OTHER_NAMES:
        yield ast.Name(OTHER_NAMES[node.id], ast.Load()), PART
    called = isinstance(parent, ast.Call) and parent.func is node
    if node.id in names and not called:
        others = [name for name in names if name not in (node.id, "self", "cls")]
        for name in others[-MOST_NAMES:]:
            yield ast.Name(name, ast.Load()), NAME


def _is_bound(node: ast.AST, parent: ast.AST) -> TypeGuard[ast.expr]:
    """Whether a node that is not itself a number is an argument of `range` or a bound of a slice."""
    if not isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.BinOp)):
        return False
    if isinstance(parent, ast.Call):
        return isinstance(parent.func, ast.Name) and parent.func.id == "range" and node in parent.args
    return isinstance(parent, ast.Slice)

"""Wrong expressions: arithmetic, numbers and bounds, defaults, values that changed places, comparisons, conditions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TypeVar

import libcst as cst

from gumshoe.env.bugs.operators.mutation import (
    Mutation,
    ParsedFile,
    called,
    like,
    negated,
    operator,
    pick_name,
    replace,
    shifted,
    without_each,
)

ARITHMETIC: dict[type[cst.CSTNode], tuple[type[cst.CSTNode], ...]] = {
    cst.Add: (cst.Subtract,),
    cst.Subtract: (cst.Add,),
    cst.Multiply: (cst.Divide, cst.Add),
    cst.Divide: (cst.FloorDivide, cst.Multiply),
    cst.FloorDivide: (cst.Divide, cst.Modulo),
    cst.Modulo: (cst.FloorDivide,),
    cst.Power: (cst.Multiply,),
    cst.BitAnd: (cst.BitOr,),
    cst.BitOr: (cst.BitAnd,),
    cst.LeftShift: (cst.RightShift,),
    cst.RightShift: (cst.LeftShift,),
    cst.AddAssign: (cst.SubtractAssign,),
    cst.SubtractAssign: (cst.AddAssign,),
    cst.MultiplyAssign: (cst.DivideAssign,),
    cst.BitOrAssign: (cst.BitAndAssign,),
}
ItemT = TypeVar("ItemT", cst.Arg, cst.BaseElement)
TEXTS = (cst.SimpleString, cst.FormattedString, cst.ConcatenatedString)


@operator(cst.BinaryOperation, cst.AugAssign)
def arithmetic(node: cst.BinaryOperation | cst.AugAssign, source: ParsedFile) -> Iterator[Mutation]:
    """A wrong arithmetic operator."""
    sides = (node.left, node.right) if isinstance(node, cst.BinaryOperation) else (node.value,)
    if any(isinstance(side, TEXTS) for side in sides):
        return
    old = node.operator
    for other in ARITHMETIC.get(type(old), ()):
        yield replace(old, like(other, old))


@operator(cst.Integer)
def off_by_one(node: cst.Integer, source: ParsedFile) -> Iterator[Mutation]:
    """A number is one too large or too small."""
    parent = source.parent(node)
    if isinstance(parent, cst.Slice | cst.Index | cst.Param | cst.UnaryOperation):
        return
    yield from _nearby(node)


def _nearby(value: cst.BaseExpression) -> Iterator[Mutation]:
    """One more and one less."""
    for by in (1, -1):
        yield replace(value, shifted(value, by))


@operator(cst.Call, cst.Slice, cst.Index)
def range_bounds(node: cst.Call | cst.Slice | cst.Index, source: ParsedFile) -> Iterator[Mutation]:
    """A range, a slice or an index starts or ends in the wrong place."""
    if isinstance(node, cst.Call):
        yield from _calls(node)
    elif isinstance(node, cst.Slice):
        yield from _slices(node)
    else:
        yield from _wrong_end(node)


def _calls(call: cst.Call) -> Iterator[Mutation]:
    name = pick_name(call.func, ("range", "enumerate"))
    if name == "range" and not any(argument.star or argument.keyword for argument in call.args):
        for argument in call.args[:2]:
            yield from _nearby(argument.value)
        if len(call.args) == 1:
            start = cst.Arg(cst.Integer("1"), comma=cst.Comma(whitespace_after=cst.SimpleWhitespace(" ")))
            yield replace(call, call.with_changes(args=[start, *call.args]))
    elif name == "enumerate" and len(call.args) == 2:
        yield replace(call, call.with_changes(args=[call.args[0].with_changes(comma=cst.MaybeSentinel.DEFAULT)]))


def _slices(node: cst.Slice) -> Iterator[Mutation]:
    for bound in (node.lower, node.upper):
        if bound is not None:
            yield from _nearby(bound)
    if node.lower is not None and node.upper is not None:
        yield replace(node, node.with_changes(lower=None))
        yield replace(node, node.with_changes(upper=None))


def _wrong_end(node: cst.Index) -> Iterator[Mutation]:
    value = node.value
    if isinstance(value, cst.Integer) and value.value == "0":
        yield replace(value, cst.UnaryOperation(cst.Minus(), cst.Integer("1")))
        yield replace(value, cst.Integer("1"))
    elif isinstance(value, cst.UnaryOperation) and isinstance(value.operator, cst.Minus):
        if isinstance(value.expression, cst.Integer) and value.expression.value == "1":
            yield replace(value, cst.Integer("0"))
    elif isinstance(value, cst.BinaryOperation):
        yield from _nearby(value)


LOOKUPS = ("get", "pop", "setdefault", "getattr", "next")


@operator(cst.Param, cst.Call)
def wrong_default(node: cst.Param | cst.Call, source: ParsedFile) -> Iterator[Mutation]:
    """A default has the wrong value."""
    default = node.default if isinstance(node, cst.Param) else _lookup_default(node)
    if default is not None:
        for other in _others(default):
            yield replace(default, other)


def _lookup_default(call: cst.Call) -> cst.BaseExpression | None:
    return call.args[-1].value if pick_name(called(call), LOOKUPS) and len(call.args) > 1 else None


def _others(default: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    if isinstance(default, cst.Integer):
        yield shifted(default, 1)
        if default.value not in ("0", "1"):
            yield cst.Integer("0")
    elif isinstance(default, cst.Name) and default.value in ("True", "False"):
        yield cst.Name("False" if default.value == "True" else "True")
    elif isinstance(default, cst.Name) and default.value == "None":
        yield cst.Integer("0")
    elif isinstance(default, cst.Float):
        yield cst.Float("0.0") if float(default.value) else cst.Float("1.0")
    elif isinstance(default, cst.SimpleString) and default.raw_value:
        yield cst.SimpleString('""')


@operator(cst.Call)
def swapped_arguments(node: cst.Call, source: ParsedFile) -> Iterator[Mutation]:
    """Two arguments of a call changed places."""
    for first, second in pairwise(node.args):
        alike = not first.star and not second.star and bool(first.keyword) == bool(second.keyword)
        if alike and not first.value.deep_equals(second.value):
            yield replace(node, node.with_changes(args=_swapped(node.args, first, second)))


@operator(cst.Tuple)
def swapped_result(node: cst.Tuple, source: ParsedFile) -> Iterator[Mutation]:
    """A function returns its values in the wrong order."""
    if isinstance(source.parent(node), cst.Return):
        for first, second in pairwise(node.elements):
            plain = isinstance(first, cst.Element) and isinstance(second, cst.Element)
            if plain and not first.value.deep_equals(second.value):
                yield replace(node, node.with_changes(elements=_swapped(node.elements, first, second)))


def _swapped(items: Sequence[ItemT], first: ItemT, second: ItemT) -> list[ItemT]:
    """The items of a call or tuple, two of which have each other's value."""
    values = {first: second.value, second: first.value}
    return [item.with_changes(value=values[item]) if item in values else item for item in items]


COMPARISONS: dict[type[cst.BaseCompOp], tuple[type[cst.BaseCompOp], ...]] = {
    cst.LessThan: (cst.LessThanEqual, cst.GreaterThan),
    cst.LessThanEqual: (cst.LessThan, cst.GreaterThanEqual),
    cst.GreaterThan: (cst.GreaterThanEqual, cst.LessThan),
    cst.GreaterThanEqual: (cst.GreaterThan, cst.LessThanEqual),
    cst.Equal: (cst.GreaterThanEqual, cst.LessThanEqual, cst.Is),
    cst.Is: (cst.Equal,),
}


@operator(cst.ComparisonTarget)
def comparison(node: cst.ComparisonTarget, source: ParsedFile) -> Iterator[Mutation]:
    """A comparison is off at its boundary or points the wrong way."""
    for other in COMPARISONS.get(type(node.operator), ()):
        if other is cst.Equal and isinstance(node.comparator, cst.Name) and node.comparator.value == "None":
            continue
        yield replace(node.operator, like(other, node.operator))


@operator(cst.If, cst.IfExp, cst.CompIf)
def inverted_condition(node: cst.If | cst.IfExp | cst.CompIf, source: ParsedFile) -> Iterator[Mutation]:
    """A condition holds when it should not."""
    yield replace(node.test, negated(node.test))


@operator(cst.BooleanOperation, cst.CompFor, cst.UnaryOperation)
def dropped_condition(
    node: cst.BooleanOperation | cst.CompFor | cst.UnaryOperation, source: ParsedFile
) -> Iterator[Mutation]:
    """A part of a condition is missing."""
    if isinstance(node, cst.BooleanOperation):
        for side in (node.left, node.right):
            yield replace(node, side.with_changes(lpar=[*node.lpar, *side.lpar], rpar=[*side.rpar, *node.rpar]))
    elif isinstance(node, cst.CompFor) and node.ifs:
        for rest in without_each(node.ifs):
            yield replace(node, node.with_changes(ifs=rest))
    elif isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not) and not _is_test(node, source):
        yield replace(node, node.expression)


def _is_test(node: cst.UnaryOperation, source: ParsedFile) -> bool:
    """Whether this is the whole condition: inverting that is the operator above."""
    return isinstance(source.parent(node), cst.If | cst.IfExp | cst.CompIf)


@operator(cst.BooleanOperation)
def boolean_operator(node: cst.BooleanOperation, source: ParsedFile) -> Iterator[Mutation]:
    """`and` and `or` are confused."""
    old = node.operator
    kind = cst.Or if isinstance(old, cst.And) else cst.And
    yield replace(old, like(kind, old))

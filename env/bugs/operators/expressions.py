"""Wrong expressions: arithmetic, numbers and bounds, defaults, values that changed places, comparisons, conditions.

Then names that are confused: the right kind of thing, but the wrong variable, attribute, function or exception.
"""

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

"""Numbers and bounds that are off by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from gumshoe.env.synth.build import pick_name, shifted
from gumshoe.env.synth.mutation import Mutation, Operator, replace
from gumshoe.env.synth.source import ParsedFile

__all__ = ["OFF_BY_ONE", "RANGE_BOUNDS"]


def _off_by_one(node: cst.Integer, source: ParsedFile) -> Iterator[Mutation]:
    parent = source.parent(node)
    if isinstance(parent, cst.Slice | cst.Index | cst.Param | cst.UnaryOperation):
        return
    for by in (1, -1):
        yield replace(node, shifted(node, by))


OFF_BY_ONE = Operator("off_by_one", "a number is one too large or too small", (cst.Integer,), _off_by_one)


def _range_bounds(node: cst.Call | cst.Slice | cst.Index, source: ParsedFile) -> Iterator[Mutation]:
    if isinstance(node, cst.Call):
        yield from _calls(node)
    elif isinstance(node, cst.Slice):
        yield from _slices(node)
    else:
        yield from _wrong_end(node)


def _calls(call: cst.Call) -> Iterator[Mutation]:
    name = pick_name(call.func, ("range", "enumerate"))
    if name == "range" and not any(argument.star or argument.keyword for argument in call.args):
        yield from _ranges(call.args)
        if len(call.args) == 1:
            start = cst.Arg(cst.Integer("1"), comma=cst.Comma(whitespace_after=cst.SimpleWhitespace(" ")))
            yield replace(call, call.with_changes(args=[start, *call.args]))
    elif name == "enumerate" and len(call.args) == 2:
        yield replace(call, call.with_changes(args=[call.args[0].with_changes(comma=cst.MaybeSentinel.DEFAULT)]))


def _ranges(arguments: Sequence[cst.Arg]) -> Iterator[Mutation]:
    for argument in arguments[:2]:
        for by in (1, -1):
            yield replace(argument.value, shifted(argument.value, by))


def _slices(node: cst.Slice) -> Iterator[Mutation]:
    for bound in (node.lower, node.upper):
        if bound is not None:
            for by in (1, -1):
                yield replace(bound, shifted(bound, by))
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
        for by in (1, -1):
            yield replace(value, shifted(value, by))


RANGE_BOUNDS = Operator(
    "range_bounds",
    "a range, a slice or an index starts or ends in the wrong place",
    (cst.Call, cst.Slice, cst.Index),
    _range_bounds,
)

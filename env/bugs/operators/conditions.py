"""Comparisons and conditions: off at the boundary, inverted, incomplete, joined the wrong way."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from gumshoe.env.bugs.operators.mutation import Mutation, like, negated, operator, replace
from gumshoe.env.bugs.operators.source import ParsedFile

OTHERS: dict[type[cst.BaseCompOp], tuple[type[cst.BaseCompOp], ...]] = {
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
    for other in OTHERS.get(type(node.operator), ()):
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
        for dropped in node.ifs:
            yield replace(node, node.with_changes(ifs=[item for item in node.ifs if item is not dropped]))
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

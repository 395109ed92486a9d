"""Conditions that are inverted, incomplete, or joined the wrong way."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from gumshoe.env.synth.build import like, negated
from gumshoe.env.synth.mutation import Mutation, Operator, replace
from gumshoe.env.synth.source import ParsedFile

__all__ = ["BOOLEAN_OPERATOR", "DROPPED_CONDITION", "INVERTED_CONDITION"]


def _inverted(node: cst.If | cst.IfExp | cst.CompIf, source: ParsedFile) -> Iterator[Mutation]:
    yield replace(node.test, negated(node.test))


INVERTED_CONDITION = Operator(
    "inverted_condition", "a condition holds when it should not", (cst.If, cst.IfExp, cst.CompIf), _inverted
)


def _dropped(node: cst.BooleanOperation | cst.CompFor | cst.UnaryOperation, source: ParsedFile) -> Iterator[Mutation]:
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


DROPPED_CONDITION = Operator(
    "dropped_condition",
    "a part of a condition is missing",
    (cst.BooleanOperation, cst.CompFor, cst.UnaryOperation),
    _dropped,
)


def _joined(node: cst.BooleanOperation, source: ParsedFile) -> Iterator[Mutation]:
    old = node.operator
    kind = cst.Or if isinstance(old, cst.And) else cst.And
    yield replace(old, like(kind, old))


BOOLEAN_OPERATOR = Operator("boolean_operator", "`and` and `or` are confused", (cst.BooleanOperation,), _joined)

"""Comparisons that are off at their boundary, or point the wrong way."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from gumshoe.env.synth.build import like
from gumshoe.env.synth.mutation import Mutation, Operator, replace
from gumshoe.env.synth.source import ParsedFile

__all__ = ["COMPARISON"]

OTHERS: dict[type[cst.BaseCompOp], tuple[type[cst.BaseCompOp], ...]] = {
    cst.LessThan: (cst.LessThanEqual, cst.GreaterThan),
    cst.LessThanEqual: (cst.LessThan, cst.GreaterThanEqual),
    cst.GreaterThan: (cst.GreaterThanEqual, cst.LessThan),
    cst.GreaterThanEqual: (cst.GreaterThan, cst.LessThanEqual),
    cst.Equal: (cst.GreaterThanEqual, cst.LessThanEqual, cst.Is),
    cst.Is: (cst.Equal,),
}


def _propose(node: cst.ComparisonTarget, source: ParsedFile) -> Iterator[Mutation]:
    for other in OTHERS.get(type(node.operator), ()):
        if other is cst.Equal and isinstance(node.comparator, cst.Name) and node.comparator.value == "None":
            continue
        yield replace(node.operator, like(other, node.operator))


COMPARISON = Operator(
    "comparison", "a comparison is off at its boundary or points the wrong way", (cst.ComparisonTarget,), _propose
)

"""Wrong arithmetic operators."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from gumshoe.env.synth.build import like
from gumshoe.env.synth.mutation import Mutation, Operator, replace
from gumshoe.env.synth.source import ParsedFile

__all__ = ["ARITHMETIC"]

OTHERS: dict[type[cst.CSTNode], tuple[type[cst.CSTNode], ...]] = {
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
TEXTS = (cst.SimpleString, cst.FormattedString, cst.ConcatenatedString)


def _propose(node: cst.BinaryOperation | cst.AugAssign, source: ParsedFile) -> Iterator[Mutation]:
    sides = (node.left, node.right) if isinstance(node, cst.BinaryOperation) else (node.value,)
    if any(isinstance(side, TEXTS) for side in sides):
        return
    old = node.operator
    for other in OTHERS.get(type(old), ()):
        yield replace(old, like(other, old))


ARITHMETIC = Operator("arithmetic", "a wrong arithmetic operator", (cst.BinaryOperation, cst.AugAssign), _propose)

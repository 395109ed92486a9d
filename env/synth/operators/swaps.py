"""Values that changed places."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import libcst as cst

from gumshoe.env.synth.mutation import Mutation, Operator, replace
from gumshoe.env.synth.source import ParsedFile

__all__ = ["SWAPPED_ARGUMENTS", "SWAPPED_RESULT"]


def _arguments(node: cst.Call, source: ParsedFile) -> Iterator[Mutation]:
    for first, second in pairwise(node.args):
        alike = not first.star and not second.star and bool(first.keyword) == bool(second.keyword)
        if alike and not first.value.deep_equals(second.value):
            yield replace(node, node.with_changes(args=_swapped(node.args, first, second)))


def _swapped(arguments: Sequence[cst.Arg], first: cst.Arg, second: cst.Arg) -> list[cst.Arg]:
    values = {first: second.value, second: first.value}
    return [item.with_changes(value=values[item]) if item in values else item for item in arguments]


SWAPPED_ARGUMENTS = Operator("swapped_arguments", "two arguments of a call changed places", (cst.Call,), _arguments)


def _result(node: cst.Tuple, source: ParsedFile) -> Iterator[Mutation]:
    if not isinstance(source.parent(node), cst.Return) or len(node.elements) < 2:
        return
    for index in range(len(node.elements) - 1):
        first, second = node.elements[index : index + 2]
        if isinstance(first, cst.Element) and isinstance(second, cst.Element):
            swapped = [first.with_changes(value=second.value), second.with_changes(value=first.value)]
            elements = [*node.elements[:index], *swapped, *node.elements[index + 2 :]]
            if not first.value.deep_equals(second.value):
                yield replace(node, node.with_changes(elements=elements))


SWAPPED_RESULT = Operator("swapped_result", "a function returns its values in the wrong order", (cst.Tuple,), _result)

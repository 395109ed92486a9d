"""Mistakes in several places at once, whose cause and symptom are in different functions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

import libcst as cst

from gumshoe.env.synth.mutation import Mutation, Operator
from gumshoe.env.synth.source import ParsedFile

__all__ = ["MULTI_SITE"]


def _propose(node: cst.FunctionDef, source: ParsedFile) -> Iterator[Mutation]:
    yield from _crossed_attributes(node, source)
    yield from _renamed_key(node, source)


def _crossed_attributes(function: cst.FunctionDef, source: ParsedFile) -> Iterator[Mutation]:
    """Two attributes get each other's value; the methods that read them show it."""
    stores = [
        item
        for item in source.inside(function, cst.Assign)
        if len(item.targets) == 1 and isinstance(item.targets[0].target, cst.Attribute)
    ]
    for first, second in pairwise(stores):
        if not first.value.deep_equals(second.value):
            yield Mutation(((first.value, second.value), (second.value, first.value)))


def _renamed_key(function: cst.FunctionDef, source: ParsedFile) -> Iterator[Mutation]:
    """All of a function's uses of a key are misspelled alike; the functions that share the mapping disagree."""
    here = _keys(function, source)
    for key, nodes in here.items():
        elsewhere = sum(len(found.get(key, ())) for found in _other_keys(function, source))
        if elsewhere and len(nodes) > 1:
            quote = nodes[0].value[0]
            yield Mutation(tuple((node, node.with_changes(value=f"{quote}{key}s{quote}")) for node in nodes))


def _other_keys(function: cst.FunctionDef, source: ParsedFile) -> Iterator[dict[str, list[cst.SimpleString]]]:
    for other in source.nodes:
        if isinstance(other, cst.FunctionDef) and other is not function:
            yield _keys(other, source)


def _keys(function: cst.FunctionDef, source: ParsedFile) -> dict[str, list[cst.SimpleString]]:
    """The plain texts that a function uses as keys: in a subscript, a dict display or as the first argument of get."""
    keys: dict[str, list[cst.SimpleString]] = defaultdict(list)
    for node in source.inside(function, cst.SimpleString):
        parent = source.parent(node)
        is_key = isinstance(parent, cst.Index) or (isinstance(parent, cst.DictElement) and parent.key is node)
        if is_key and node.quote in ("'", '"') and not node.prefix and node.raw_value.isidentifier():
            keys[node.raw_value].append(node)
    return keys


MULTI_SITE = Operator(
    "multi_site", "several places are wrong alike; it shows in another function", (cst.FunctionDef,), _propose
)

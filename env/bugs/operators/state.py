"""State that is shared or kept when it should not be, and mistakes that show in another function."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

import libcst as cst

from gumshoe.env.bugs.operators.mutation import (
    Mutation,
    ParsedFile,
    called,
    operator,
    pick_name,
    replace,
    without_each,
    without_statement,
)

EMPTY = ("[]", "{}", "list()", "dict()", "set()")


@operator(cst.Param)
def mutable_default(node: cst.Param, source: ParsedFile) -> Iterator[Mutation]:
    """A default is shared by all calls."""
    function = source.function(node)
    if function is None or not isinstance(node.default, cst.Name) or node.default.value != "None":
        return
    for empty in _fresh_values(function, node.name.value, source):
        yield replace(node.default, empty)


def _fresh_values(function: cst.FunctionDef, name: str, source: ParsedFile) -> Iterator[cst.BaseExpression]:
    """The empty containers that the function puts in place of a missing argument."""
    for assign in source.inside(function, cst.Assign):
        if any(isinstance(item.target, cst.Name) and item.target.value == name for item in assign.targets):
            yield from _empties(assign.value, source)
    for either in source.inside(function, cst.BooleanOperation):
        if isinstance(either.left, cst.Name) and either.left.value == name:
            yield from _empties(either.right, source)
    for choice in source.inside(function, cst.IfExp):
        if any(isinstance(side, cst.Name) and side.value == name for side in (choice.body, choice.orelse)):
            yield from _empties(choice.body, source)
            yield from _empties(choice.orelse, source)


def _empties(value: cst.BaseExpression, source: ParsedFile) -> Iterator[cst.BaseExpression]:
    if source.code(value) in EMPTY:
        yield value.deep_clone()


COPIERS = ("list", "dict", "set", "tuple", "copy", "deepcopy", "sorted", "reversed")


@operator(cst.Call)
def shared_state(node: cst.Call, source: ParsedFile) -> Iterator[Mutation]:
    """A copy is missing, so that two parts share a value."""
    func = node.func
    if isinstance(func, cst.Attribute) and func.attr.value == "copy" and not node.args:
        yield replace(node, func.value)
        return
    if pick_name(called(node), COPIERS) and len(node.args) == 1:
        copied = node.args[0].value
        if not node.args[0].star and isinstance(copied, cst.Name | cst.Attribute | cst.Subscript):
            yield replace(node, copied)


# Names, or parts of them, of what is kept to save finding it again, and so has to follow what it was made from:
# `_price_cache`, `indexes`, `last_seen`, `running_total`.
CACHE = re.compile(r"cache|memo|seen|index|known|latest|last|total|dirty", re.IGNORECASE)
KEY = re.compile(r"key", re.IGNORECASE)
FORGETTING = ("clear", "pop", "popitem", "discard", "remove", "invalidate", "cache_clear")


@operator(cst.Tuple, cst.Subscript, cst.SimpleStatementLine)
def stale_cache(node: cst.Tuple | cst.Subscript | cst.SimpleStatementLine, source: ParsedFile) -> Iterator[Mutation]:
    """Something remembered is used where it no longer holds."""
    if isinstance(node, cst.Subscript):
        if len(node.slice) > 1 and CACHE.search(source.code(node.value)):
            yield from _shorter_subscript(node)
        return
    if isinstance(node, cst.Tuple):
        if len(node.elements) > 1 and _is_key(node, source):
            yield from _shorter(node)
        return
    block = source.parent(node)
    if isinstance(block, cst.IndentedBlock) and _forgets(node.body[0], source):
        yield without_statement(block, node)


def _is_key(node: cst.Tuple, source: ParsedFile) -> bool:
    parent = source.parent(node)
    function = source.function(node)
    if isinstance(parent, cst.Return):
        return function is not None and bool(KEY.search(function.name.value))
    if isinstance(parent, cst.Assign):
        return any(KEY.search(source.code(item.target)) for item in parent.targets)
    subscript = source.enclosing(node, cst.Subscript)
    return isinstance(parent, cst.Index) and subscript is not None and bool(CACHE.search(source.code(subscript.value)))


def _shorter(node: cst.Tuple) -> Iterator[Mutation]:
    for rest in without_each(node.elements):
        rest[-1] = rest[-1].with_changes(comma=cst.Comma() if len(rest) == 1 else cst.MaybeSentinel.DEFAULT)
        yield replace(node, node.with_changes(elements=rest))


def _shorter_subscript(node: cst.Subscript) -> Iterator[Mutation]:
    for rest in without_each(node.slice):
        rest[-1] = rest[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
        yield replace(node, node.with_changes(slice=rest))


def _forgets(statement: cst.BaseSmallStatement, source: ParsedFile) -> bool:
    """Whether the statement throws away something that was remembered."""
    if isinstance(statement, cst.Del):
        return bool(CACHE.search(source.code(statement.target)))
    if isinstance(statement, cst.Assign):
        attributes = [item.target for item in statement.targets if isinstance(item.target, cst.Attribute)]
        empty = source.code(statement.value) in (*EMPTY, "None", "0", "True")
        return empty and any(CACHE.search(item.attr.value) for item in attributes)
    call = statement.value if isinstance(statement, cst.Expr) else None
    if isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute):
        return call.func.attr.value in FORGETTING and bool(CACHE.search(source.code(call.func)))
    return False


@operator(cst.FunctionDef)
def multi_site(node: cst.FunctionDef, source: ParsedFile) -> Iterator[Mutation]:
    """Several places are wrong alike; it shows in another function."""
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
    """The plain texts that a function uses as keys, in a subscript or a dict display."""
    keys: dict[str, list[cst.SimpleString]] = defaultdict(list)
    for node in source.inside(function, cst.SimpleString):
        parent = source.parent(node)
        is_key = isinstance(parent, cst.Index) or (isinstance(parent, cst.DictElement) and parent.key is node)
        if is_key and node.quote in ("'", '"') and not node.prefix and node.raw_value.isidentifier():
            keys[node.raw_value].append(node)
    return keys

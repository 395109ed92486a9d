# ruff: noqa: N802 (libcst calls the hook by the name of its node)
"""Strings that name code, recognized by where they stand."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import libcst as cst

from gumshoe.env.harvest.rename.names import Names
from gumshoe.env.harvest.rename.prose import Exchange, in_code

__all__ = ["CODE_STRINGS", "LISTS_OF_NAMES", "in_arguments", "in_literals", "in_module_option", "in_string"]

# The first two name what is in modules, the others attributes.
LISTS_OF_NAMES = ("__all__", "pytest_plugins", "__slots__", "__match_args__", "_fields")
# Function to the number of leading arguments that name code.
CODE_STRINGS = {
    "getattr": 2,
    "hasattr": 2,
    "setattr": 2,
    "delattr": 2,
    "delitem": 2,
    "patch": 1,
    "object": 2,
    "multiple": 1,
    "import_module": 2,
    "__import__": 1,
    "importorskip": 1,
    "resolve_name": 1,
    "attrgetter": 9,
    "methodcaller": 1,
    "parametrize": 1,
    "usefixtures": 9,
    "getfixturevalue": 1,
    "namedtuple": 2,
    "NamedTuple": 2,
    "TypedDict": 2,
    "TypeVar": 1,
    "ForwardRef": 1,
    "cast": 1,
    "version": 1,
    "metadata": 1,
    "distribution": 1,
    "get_distribution": 1,
    "fixture": 0,
    "run_module": 1,
    "find_spec": 1,
    "getLogger": 1,
}
# These name variables; the others name attributes or what a path leads to.
OF_VARIABLES = frozenset({"parametrize", "usefixtures", "getfixturevalue", "fixture"})
OF_NAMES = frozenset({"argnames", "name", "indirect", "target"})


def in_string(node: cst.SimpleString, exchange: Exchange) -> cst.SimpleString:
    """A string with every name in it replaced."""
    begin = len(node.prefix) + len(node.quote)
    text = node.value[begin : -len(node.quote)]
    if "b" in node.prefix.lower():
        return node
    return node.with_changes(value=node.value[:begin] + in_code(text, exchange) + node.quote)


def in_literals(node: Any, exchange: Exchange) -> Any:
    """A piece of syntax with the names in all of its strings replaced."""
    return node.visit(_Strings(exchange))


def in_arguments(called: str, arguments: Sequence[cst.Arg], names: Names) -> list[cst.Arg]:
    """The arguments of a function that takes names of code as strings."""
    found: list[cst.Arg] = []
    for number, argument in enumerate(arguments):
        keyword = argument.keyword.value if argument.keyword is not None else ""
        naming = keyword in OF_NAMES if keyword else number < CODE_STRINGS[called]
        literal = isinstance(argument.value, cst.SimpleString | cst.List | cst.Tuple | cst.ConcatenatedString)
        if naming and literal:
            exchange = names.variable if called in OF_VARIABLES else names.part
            argument = argument.with_changes(value=in_literals(argument.value, exchange))
        found.append(argument)
    return found


def in_module_option(elements: Sequence[cst.BaseElement], names: Names) -> list[cst.BaseElement]:
    """The words of a command line: the one after `-m` names a module."""
    found: list[cst.BaseElement] = []
    option = False
    for element in elements:
        value = element.value
        if option and isinstance(value, cst.SimpleString):
            element = element.with_changes(value=in_string(value, names.anything))
        option = isinstance(value, cst.SimpleString) and re.fullmatch(r"""["']-m["']""", value.value) is not None
        found.append(element)
    return found


class _Strings(cst.CSTTransformer):
    def __init__(self, exchange: Exchange) -> None:
        super().__init__()
        self._exchange = exchange

    def leave_SimpleString(self, original_node: cst.SimpleString, updated_node: cst.SimpleString) -> cst.SimpleString:
        return in_string(updated_node, self._exchange)

"""Writes the syntax tree of a Python file as JSON, for a host whose own Python may not know the syntax.

    python __main__.py verdict.trees answer.json < module.py

The answer is a list of nodes, the module first: `[type, {field or attribute: value}]`. A value that is a node is
`{"node": its place in the list}`, a list holds such values, and bytes are `{"bytes": their text in Latin-1}`. Numbers
become 0. Nodes that Python 3.8 and 3.9 have done away with are written as what took their place. The exit code is 1 if
the file cannot be parsed. No part of it is run.
"""

import ast
import json
import sys
import warnings

_CONSTANTS = {"Str": "s", "Bytes": "s", "Num": "n", "NameConstant": "value", "Ellipsis": ""}
"""Nodes of Python before 3.8, and their fields with the value."""


def as_data(tree):
    """A syntax tree as it is written."""
    nodes = list(ast.walk(tree))
    places = {id(node): place for place, node in enumerate(nodes)}

    def value_of(value):
        if type(value).__name__ == "Index" and isinstance(value, ast.AST):
            value = value.value
        if isinstance(value, ast.AST):
            return {"node": places[id(value)]}
        if isinstance(value, list):
            return [value_of(each) for each in value]
        if isinstance(value, bytes):
            return {"bytes": value.decode("latin-1")}
        return value if value is None or isinstance(value, (str, bool)) else 0

    return [_node(node, value_of) for node in nodes]


def _node(node, value_of):
    kind = type(node).__name__
    fields = {name: value_of(value) for name, value in ast.iter_fields(node)}
    fields.update((name, getattr(node, name)) for name in node._attributes if hasattr(node, name))
    if kind in _CONSTANTS:
        fields["value"] = fields.pop(_CONSTANTS[kind], 0)
        return ["Constant", fields]
    if kind == "ExtSlice":
        return ["Tuple", {"elts": fields["dims"], "ctx": None}]
    return [kind, fields]


def main(arguments):
    """Writes the answer. Returns the exit code."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            nodes = as_data(ast.parse(sys.stdin.buffer.read()))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return 1
    with open(arguments[0], "w") as stream:
        json.dump(nodes, stream)
    return 0

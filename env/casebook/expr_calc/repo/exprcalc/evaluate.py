"""Trees to numbers."""

import math
import operator

from .parser import Parser

OPERATORS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "%": operator.mod,
    "^": operator.pow,
}
FUNCTIONS = {"max": max, "min": min, "abs": abs, "sqrt": math.sqrt}
CONSTANTS = {"pi": math.pi, "e": math.e}


def evaluate(tree, names):
    """Return the value of a tree.

    Raises:
        NameError: a name or function is not known.
    """
    kind = tree[0]
    if kind == "number":
        return tree[1]
    if kind == "neg":
        return -evaluate(tree[1], names)
    if kind == "name":
        if tree[1] not in names:
            raise NameError("unknown name: " + tree[1])
        return names[tree[1]]
    if kind == "call":
        if tree[1] not in FUNCTIONS:
            raise NameError("unknown function: " + tree[1])
        return FUNCTIONS[tree[1]](*[evaluate(argument, names) for argument in tree[2]])
    return OPERATORS[kind](evaluate(tree[1], names), evaluate(tree[2], names))


def calculate(text, **names):
    """Return the value of the expression `text`, in which `names` may occur."""
    return evaluate(Parser(text).parse(), {**CONSTANTS, **names})

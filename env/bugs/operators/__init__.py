"""The kinds of mistakes: each is a function in one of these files, marked with `operator`."""

from gumshoe.env.bugs.operators import conditions, names, omissions, state, values
from gumshoe.env.bugs.operators.mutation import Operator

__all__ = ["OPERATORS"]

OPERATORS: dict[str, Operator] = {
    item.name: item
    for family in (conditions, names, omissions, state, values)
    for item in vars(family).values()
    if isinstance(item, Operator)
}

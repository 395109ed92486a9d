"""The kinds of mistakes: each is a function in one of these files, marked with `operator`.

A new file has to be named below, twice. An operator that gives other candidates than before needs a new
`packages.VERSION`: harvests keep the bugs that they have made by the names of the operators.
"""

from gumshoe.env.bugs.operators import expressions, omissions, state
from gumshoe.env.bugs.operators.mutation import Operator

__all__ = ["OPERATORS"]

OPERATORS: dict[str, Operator] = {
    item.name: item
    for family in (expressions, omissions, state)
    for item in vars(family).values()
    if isinstance(item, Operator)
}

"""Ids of tests, before and after their project was renamed."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from gumshoe.env.harvest.rename.names import Names
from gumshoe.env.harvest.rename.prose import in_code
from gumshoe.env.harvest.rename.tree import Tree, new_path

__all__ = ["matched", "new_argument", "new_id"]

OPTIONS = ("--deselect=", "--ignore=")


def new_id(test: str, tree: Tree, names: Names) -> str:
    """What a test is called now, as far as names tell: the part in brackets may have changed too."""
    path, colons, rest = test.partition("::")
    rest, bracket, parameters = rest.partition("[")
    new = new_path(path, tree, names)
    if not colons:
        return new
    if "::" not in rest and "." in rest:
        rest = ".".join(names.part(part) for part in rest.split("."))
    else:
        first, *others = rest.split("::")
        rest = "::".join([names.variable(first), *map(names.attribute, others)])
    return new + colons + rest + bracket + parameters


def new_argument(argument: str, tree: Tree, names: Names) -> str:
    """A pytest argument that leaves something out, under its new name."""
    for option in OPTIONS:
        if argument.startswith(option):
            return option + new_id(argument.removeprefix(option), tree, names)
    return argument


def matched(tests: Iterable[str], seen: Collection[str], tree: Tree, names: Names) -> dict[str, str]:
    """Each test's id among those of a run of the renamed project; tests that are not there are left out.

    Where parameter values are named after code, a function's tests are matched by their order.
    """
    found: dict[str, str] = {}
    open_: list[str] = []
    for test in tests:
        new = new_id(test, tree, names)
        head, bracket, parameters = new.partition("[")
        for guess in (new, head + bracket + in_code(parameters, names.anything)):
            if guess in seen:
                found[test] = guess
                break
        else:
            open_.append(test)
    taken = set(found.values())
    free: dict[str, list[str]] = {}
    for test in seen:
        if test not in taken:
            free.setdefault(test.partition("[")[0], []).append(test)
    for test in open_:
        rest = free.get(new_id(test, tree, names).partition("[")[0])
        if rest:
            found[test] = rest.pop(0)
    return found

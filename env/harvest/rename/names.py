# ruff: noqa: SIM905 (lists of words read better as text)
"""Which names of a project are replaced, in which roles, and by what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from gumshoe.env.harvest.rename.foreign import BUILTINS, ForeignNames
from gumshoe.env.harvest.rename.survey import Survey
from gumshoe.env.harvest.rename.words import SHORT, Namer

__all__ = ["Names", "choose_names"]

# What Python, pytest and unittest know by name without anybody importing it.
SPECIAL = frozenset(
    "self cls mcs args kwargs conftest setup teardown setUp tearDown runTest noxfile docs doc src tools scripts"
    " examples benchmarks bench _version _vendor collect_ignore collect_ignore_glob pytest_plugins pytestmark".split()
)
SPECIAL_BEGINNINGS = ("pytest_", "setup_", "teardown_", "setUp", "tearDown", "_repr_")


@dataclass(frozen=True)
class Names:
    """The names that are replaced. A name gets the same new name in all of its roles.

    Attributes:
        new: old name to new one.
        variables: those that may be replaced where they stand alone, or name what is in a module.
        attributes: those that may be replaced after a dot, whatever comes before it.
        modules: names of modules and packages of the project.
        tops: those that installed code is imported by.
        theirs: attributes of others that are not the project's.
        survey: what the names stand for.
    """

    new: Mapping[str, str]
    variables: frozenset[str]
    attributes: frozenset[str]
    modules: frozenset[str]
    tops: frozenset[str]
    theirs: frozenset[str]
    survey: Survey

    def variable(self, name: str) -> str:
        """What replaces a name that stands alone."""
        return self.new.get(name, name) if name in self.variables else name

    def attribute(self, name: str) -> str:
        """What replaces the name of an attribute of an unknown object."""
        return self.new.get(name, name) if name in self.attributes else name

    def part(self, name: str) -> str:
        """What replaces a part of a path that leads through modules to an attribute."""
        in_module = name in self.modules or name in self.survey.at_module
        return self.variable(name) if in_module else self.attribute(name)

    def anything(self, name: str) -> str:
        """What replaces a name in a text that is code."""
        return self.new.get(name, name)

    def without(self, names: Iterable[str]) -> Names:
        """The same names with some put back."""
        back = frozenset(names)
        return replace(self, new={name: new for name, new in self.new.items() if name not in back})


def choose_names(
    survey: Survey, foreign: ForeignNames, modules: frozenset[str], tops: frozenset[str], fixed: set[str], seed: int
) -> Names:
    """The names that can probably be replaced; only a run of the tests shows whether all of them can.

    Args:
        survey: what the names of the project stand for.
        foreign: the names of others.
        modules: the project's own modules and packages.
        tops: those that installed code is imported by.
        fixed: words of files that are not rewritten, such as sources in C.
        seed: of the new names.
    """
    never = {*BUILTINS, *survey.borrowed, *survey.hooks, *foreign.fixtures, *fixed, *SPECIAL}
    variables = {name for name in survey.variables | modules if name not in never and _plain(name)}
    attributes = {name for name in survey.attributes if name not in never | foreign.attributes and _plain(name)}
    # What is in a module can be reached through an object that cannot be told from others.
    attributes |= (variables & (survey.at_module | modules)) - foreign.attributes
    made = tuple(survey.beginnings)
    names = sorted(name for name in variables | attributes if not name.startswith(made))
    namer = Namer(seed, names, {*survey.words, *foreign.every, *fixed, *modules})
    new = {name: word for name in names if (word := namer.new(name)) != name}
    return Names(
        new,
        frozenset(variables),
        frozenset(attributes),
        modules,
        tops,
        frozenset(foreign.attributes - survey.attributes),
        survey,
    )


def _plain(name: str) -> bool:
    dunder = name.startswith("__") and name.endswith("__")
    return len(name.strip("_")) > SHORT and not dunder and not name.startswith(SPECIAL_BEGINNINGS)

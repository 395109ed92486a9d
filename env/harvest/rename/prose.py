"""Names in text that is not code: comments, docstrings, messages, configuration files."""

from __future__ import annotations

import re
from collections.abc import Callable

from gumshoe.env.harvest.rename.names import Names
from gumshoe.env.harvest.rename.words import words_of

__all__ = ["Exchange", "in_code", "in_config", "in_data", "in_distribution", "in_prose", "is_compound"]

# The letter after a backslash belongs to the backslash, in most strings.
WORD = re.compile(r"(?<![\w\\])[A-Za-z_]\w*")
DOTTED = re.compile(r"(?<![\w.\\])[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
EXAMPLE = re.compile(r"^\s*(?:>>>|\.\.\.) ")
QUOTED = re.compile(r"(`+)([^`\n]+)\1")
ARGUMENT = re.compile(r"^(\s*(?::param |:type |@param )?)(\w+)(?=\s*(?::|\())")
# A shorter name may well be an ordinary word.
PLAIN = 4

Exchange = Callable[[str], str]
"""What replaces a name."""


def in_code(text: str, exchange: Exchange) -> str:
    """Replaces every name."""
    return WORD.sub(lambda found: exchange(found[0]), text)


def in_data(text: str, names: Names) -> str:
    """Replaces what can only be a name: paths of modules, and names of several words."""
    text = DOTTED.sub(lambda found: _dotted(found[0], names), text)
    return WORD.sub(lambda found: names.anything(found[0]) if is_compound(found[0]) else found[0], text)


def in_prose(text: str, names: Names) -> str:
    """Replaces the names in a comment or a docstring, and those in its examples."""
    return "".join(_line(line, names) for line in text.splitlines(keepends=True))


def in_config(text: str, names: Names) -> str:
    """Replaces the names in a configuration file: those of packages wherever they are."""
    return in_distribution(in_data(text, names), names)


def in_distribution(text: str, names: Names) -> str:
    """Replaces the names of packages, including the way the index spells them: with hyphens."""
    for word in sorted(names.tops, key=len, reverse=True):
        made = names.anything(word)
        for old, new in {(word, made), (word.replace("_", "-"), made.replace("_", "-"))}:
            text = re.sub(rf"(?<![\w-]){re.escape(old)}(?![\w-])", new, text)
    return text


def _line(line: str, names: Names) -> str:
    mark = EXAMPLE.match(line)
    if mark:
        return mark[0] + WORD.sub(lambda found: _example(found, names), line[mark.end() :])
    line = QUOTED.sub(lambda found: found[1] + in_code(found[2], names.anything) + found[1], line)
    line = ARGUMENT.sub(lambda found: found[1] + _parameter(found[2], names), line)
    return WORD.sub(lambda found: names.anything(found[0]) if _telling(found[0], names) else found[0], line)


def _example(found: re.Match[str], names: Names) -> str:
    behind_dot = found.string[: found.start()].rstrip().endswith(".")
    return (names.attribute if behind_dot else names.variable)(found[0])


def _parameter(word: str, names: Names) -> str:
    return names.variable(word) if word in names.survey.parameters else word


def _telling(word: str, names: Names) -> bool:
    if word in names.tops or is_compound(word):
        return True
    return len(word) >= PLAIN and (word in names.survey.callables or word in names.modules)


def is_compound(word: str) -> bool:
    """Whether a word is spelled as only a name would be."""
    return len(words_of(word)) > 1


def _dotted(path: str, names: Names) -> str:
    first = path.partition(".")[0]
    if first not in names.modules and first not in names.survey.fields:
        return path
    return ".".join(map(names.part, path.split(".")))

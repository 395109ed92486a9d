"""Command lines of Python programs, those of our own package in sandboxes included."""

from __future__ import annotations

import re
from collections.abc import Sequence
from posixpath import basename

__all__ = ["is_pytest", "our_plugin", "our_program", "python_words"]

_PYTHON = re.compile(r"(.*/)?(python|pypy)[\d.]*$")
_WITH_VALUE = {"-W", "-X"}
_PYTEST = {"pytest", "py.test"}


def python_words(argv: Sequence[str]) -> int:
    """How many words at the beginning are an interpreter and its options; 0 where another program is started."""
    if not _PYTHON.match(argv[0]):
        return 0
    words = 1
    while words < len(argv) and argv[words].startswith("-") and argv[words] not in ("-m", "-c"):
        words += 2 if argv[words] in _WITH_VALUE else 1
    return words


def is_pytest(argv: Sequence[str]) -> bool:
    """Whether a command is pytest, run as a module or by its name."""
    program = list(argv[python_words(argv) :])
    named = program[1:2] if program[:1] == ["-m"] else [basename(each) for each in program[:1]]
    return bool(_PYTEST.intersection(named))


def our_program(support: str, name: str) -> list[str]:
    """The words that follow an interpreter to run a program of `env/inside`, before its arguments.

    Args:
        support: the sandbox's support folder.
        name: of the program's module, such as `runs.whatif`.
    """
    return [f"{support}/{_package()}/__main__.py", name]


def our_plugin(name: str) -> str:
    """The option that has pytest load a module of `env/inside`, such as `runs.outcomes`."""
    return f"-p {_package()}.{name}"


def _package() -> str:
    # Here, because an import of gumshoe.env brings Gymnasium.
    from gumshoe.env.inside.loading import PACKAGE

    return PACKAGE

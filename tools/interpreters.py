"""Command lines of Python programs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from posixpath import basename

__all__ = ["is_pytest", "python_words"]

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

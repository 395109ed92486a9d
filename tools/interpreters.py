"""Command lines of Python programs."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["python_words"]

_PYTHON = re.compile(r"(.*/)?(python|pypy)[\d.]*$")
_WITH_VALUE = {"-W", "-X"}


def python_words(argv: Sequence[str]) -> int:
    """How many words at the beginning are an interpreter and its options; 0 where another program is started."""
    if not _PYTHON.match(argv[0]):
        return 0
    words = 1
    while words < len(argv) and argv[words].startswith("-") and argv[words] not in ("-m", "-c"):
        words += 2 if argv[words] in _WITH_VALUE else 1
    return words

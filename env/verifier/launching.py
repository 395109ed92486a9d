"""How an entrypoint's tests are run for a verdict: by our own program where we know the runner, else as they are."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Launch", "launch"]

PROGRAM = "gumshoe_verdict.py"
PYTHON = re.compile(r"(python|pypy)[\d.]*")
OPTIONS_WITH_VALUE = {"-W", "-X", "--check-hash-based-pycs"}
SCRIPTS = ("runtests.py", "bin/test")
"""Endings of the scripts whose runners we know: Django's and sympy's."""


@dataclass(frozen=True)
class Launch:
    """What is started. `direct` says that it is our own program, which loads the runner first."""

    argv: tuple[str, ...]
    direct: bool


def launch(entrypoint: Sequence[str], support: str) -> Launch:
    """What runs an entrypoint's tests and reports each of them.

    `python -m pytest`, `pytest`, `python -m unittest`, Django's `runtests.py` and sympy's `bin/test` are run by our own
    program. So is any other Python script: one that reports no tests is a test itself, which passes when it runs to its
    end. Any other command is run as it is; whatever pytest it starts reports.

    Args:
        entrypoint: the task's argv.
        support: the folder with our modules inside the sandbox.
    """
    program = posixpath.join(support, PROGRAM)
    name = posixpath.basename(entrypoint[0])
    if PYTHON.fullmatch(name):
        options, rest = _split(entrypoint)
        if rest[:2] == ["-m", "pytest"] or rest[:2] == ["-m", "py.test"]:
            return Launch((*options, program, "pytest", *rest[2:]), direct=True)
        if rest[:2] == ["-m", "unittest"]:
            return Launch((*options, program, "unittest", *rest[2:]), direct=True)
        if rest and (rest[0].endswith((".py", *SCRIPTS))):
            return Launch((*options, program, "script", *rest), direct=True)
    elif name in ("pytest", "py.test"):
        return Launch(("python", program, "bare-pytest", *entrypoint[1:]), direct=True)
    elif entrypoint[0].endswith(SCRIPTS):
        return Launch(("python", program, "script", *entrypoint), direct=True)
    return Launch(tuple(entrypoint), direct=False)


def _split(entrypoint: Sequence[str]) -> tuple[list[str], list[str]]:
    """The interpreter with its options, and what it is to run."""
    end = 1
    while end < len(entrypoint) and entrypoint[end].startswith("-") and entrypoint[end] not in ("-m", "-c", "-"):
        end += 2 if entrypoint[end] in OPTIONS_WITH_VALUE else 1
    return list(entrypoint[:end]), list(entrypoint[end:])

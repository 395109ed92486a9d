"""How an entrypoint's tests are run for a verdict: those of unittest and of scripts under a recorder of outcomes."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass

from gumshoe.tools.interpreters import our_program

__all__ = ["Launch", "launch"]

RECORDER = "runs.unittest_runs"
PYTHON = re.compile(r"(python|pypy)[\d.]*")
OPTIONS_WITH_VALUE = {"-W", "-X", "--check-hash-based-pycs"}
SCRIPTS = ("runtests.py", "bin/test")
"""Endings of the scripts whose runners we know: Django's and sympy's."""


@dataclass(frozen=True)
class Launch:
    """What is started. `script` is the path of a script that is a test itself if it reports none."""

    argv: tuple[str, ...]
    script: str | None = None


def launch(entrypoint: Sequence[str], support: str) -> Launch:
    """What runs an entrypoint's tests and records each of them.

    pytest loads a plugin, whatever starts it. `python -m unittest` and Python scripts, such as Django's `runtests.py`
    and sympy's `bin/test`, are run by a recorder; a script that reports no tests is a test itself.

    Args:
        entrypoint: the task's argv.
        support: the folder with our package inside the sandbox.
    """
    recorder = our_program(support, RECORDER)
    if PYTHON.fullmatch(posixpath.basename(entrypoint[0])):
        options, rest = _split(entrypoint)
        if rest[:2] == ["-m", "unittest"]:
            return Launch((*options, *recorder, "--", *rest))
        if rest and rest[0].endswith((".py", *SCRIPTS)):
            return Launch((*options, *recorder, "--", *rest), rest[0].removeprefix("./"))
    elif entrypoint[0].endswith(SCRIPTS):
        return Launch(("python", *recorder, "--", *entrypoint), entrypoint[0].removeprefix("./"))
    return Launch(tuple(entrypoint))


def _split(entrypoint: Sequence[str]) -> tuple[list[str], list[str]]:
    """The interpreter with its options, and what it is to run."""
    end = 1
    while end < len(entrypoint) and entrypoint[end].startswith("-") and entrypoint[end] not in ("-m", "-c", "-"):
        end += 2 if entrypoint[end] in OPTIONS_WITH_VALUE else 1
    return list(entrypoint[:end]), list(entrypoint[end:])

"""Command lines of Python programs, those of our own package in sandboxes included."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from contextlib import suppress
from posixpath import basename

from pydantic import TypeAdapter, ValidationError

from gumshoe.protocols import Sandbox, Workspace
from gumshoe.tools.code.source import split_lines

__all__ = [
    "PLAIN_OUTPUT",
    "behind_launcher",
    "debug_argv",
    "ignores_path",
    "is_pytest",
    "our_plugin",
    "our_program",
    "python_words",
    "syntax_error",
]

PLAIN_OUTPUT = {"TERM": "dumb", "NO_COLOR": "1", "PYTHONUNBUFFERED": "1"}
"""Variables with which programs print plain text, and at once."""

_PYTHON = re.compile(r"(.*/)?(python|pypy)[\d.]*$")
_ISOLATED = re.compile(r"-\w*[IE]\w*")
_WITH_VALUE = {"-W", "-X", "--check-hash-based-pycs"}
_PYTEST = {"pytest", "py.test"}
_CHECK_TIMEOUT_S = 20.0
_LAUNCHERS = {"timeout", "nice", "ionice", "time", "env", "stdbuf", "setsid", "nohup", "xvfb-run"}
"""Programs whose arguments end with the command that they run."""
_SHELL = re.compile(r"(.*/)?(ba|da|z)?sh$")
_ONE_COMMAND = re.compile(r"[^;&|<>()$`*?~\n]+")
"""A line of shell that is one plain command."""
_PROBLEM = TypeAdapter(tuple[str, str, int | None])


def python_words(argv: Sequence[str]) -> int:
    """How many words at the beginning are an interpreter and its options; 0 where another program is started."""
    if not _PYTHON.match(argv[0]):
        return 0
    words = 1
    while words < len(argv) and argv[words].startswith("-") and argv[words] not in ("-m", "-c", "-"):
        words += 2 if argv[words] in _WITH_VALUE else 1
    return words


def is_pytest(argv: Sequence[str]) -> bool:
    """Whether a command is pytest, run as a module or by its name."""
    program = list(argv[python_words(argv) :])
    named = program[1:2] if program[:1] == ["-m"] else [basename(each) for each in program[:1]]
    return bool(_PYTEST.intersection(named))


def ignores_path(argv: Sequence[str]) -> bool:
    """Whether a command starts an interpreter that ignores PYTHONPATH, where our plugins of pytest lie."""
    return any(map(_ISOLATED.fullmatch, argv[1 : python_words(argv)]))


def behind_launcher(argv: Sequence[str]) -> tuple[str, ...] | None:
    """The Python program that a command starts by way of another, as in `timeout 60 pytest` or `bash -c pytest`.

    None if that is none, or not plain to see, or if variables are set for it.
    """
    if not argv:
        return None
    if _SHELL.match(argv[0]) and len(argv) == 3 and re.fullmatch(r"-[ceilux]*c", argv[1]):
        try:
            words = tuple(shlex.split(argv[2])) if _ONE_COMMAND.fullmatch(argv[2]) else ()
        except ValueError:
            words = ()
        return words if words and _starts_python(words[0]) else behind_launcher(words)
    if basename(argv[0]) not in _LAUNCHERS:
        return None
    start = next((index for index, word in enumerate(argv) if _starts_python(word)), None)
    return None if start is None or any("=" in word for word in argv[:start]) else tuple(argv[start:])


def _starts_python(word: str) -> bool:
    return bool(_PYTHON.match(word)) or basename(word) in _PYTEST


def debug_argv(sandbox: Sandbox, entrypoint: Sequence[str], program: str = "debugger.main") -> list[str]:
    """The command that runs `entrypoint` under a program of `env/inside`, the debugger unless another is named.

    `python` with its options becomes that interpreter running our program; any other entrypoint is left to our program
    to find, and must be a Python program.
    """
    words = python_words(entrypoint)
    ours = our_program(sandbox.support, program)
    return [*(entrypoint[:words] or [sandbox.python]), *ours, "--", *entrypoint[words:]]


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


def syntax_error(workspace: Workspace, code: str) -> str | None:
    """What is wrong with the text of a Python file, with the line; None where nothing is.

    The interpreter that will read the code judges it, in the sandbox: what the text holds cannot harm the host.
    """
    sandbox = workspace.sandbox
    sandbox.prepare_support()
    argv = debug_argv(sandbox, workspace.debug_entrypoint, "programs.syntax")
    data = code.encode("utf-8", "surrogateescape")
    result = sandbox.run(argv, input=data, timeout=_CHECK_TIMEOUT_S, warm=True)
    if result.exit_code not in (0, None):
        return f"Python crashes when it reads this: exit code {result.exit_code}"
    for line in reversed(split_lines(result.output)):  # what starts with the interpreter may print something too
        with suppress(ValidationError):
            kind, message, number = _PROBLEM.validate_json(line)
            return f"{kind}: {message} (line {number})" if number else f"{kind}: {message}"
    return None

"""tox: the pytest command that it runs, and the variables that it has to pass on."""

from __future__ import annotations

import configparser
import shlex
from collections.abc import Mapping, Sequence
from posixpath import basename

from gumshoe.protocols import Sandbox
from gumshoe.tools.runs.interpreters import is_pytest, python_words

__all__ = ["behind_tox", "let_through"]

_OVERRIDE = "TOX_OVERRIDE"
_PASS = "testenv.pass_env+=GUMSHOE_*,PYTEST_ADDOPTS,PYTEST_PLUGINS,PYTHONPATH"
_RUNS = {"run", "r", "run-parallel", "p", "legacy", "le"}


def let_through(environment: Mapping[str, str]) -> dict[str, str]:
    """The variable with which tox 4 lets pytest load our plugins, where `environment` has no such variable itself."""
    return {} if _OVERRIDE in environment else {_OVERRIDE: _PASS}


def behind_tox(sandbox: Sandbox, argv: Sequence[str], timeout: float | None) -> tuple[str, ...] | None:
    """The pytest command that a call of tox ends with, as tox 4 itself reports it (`tox config`).

    Args:
        sandbox: where tox is, in whose workspace it is called.
        argv: any command.
        timeout: for asking tox, in seconds.

    Returns:
        None where the command is not tox, or tox runs no pytest there, or runs it in another folder.
    """
    words = _tox_words(argv)
    if not words:
        return None
    options, dashes, rest = _parted(argv[words:])
    question = [*argv[:words], "config", *options, "-k", "commands", "env_python", "change_dir", *dashes, *rest]
    told = sandbox.run(question, timeout=timeout)
    return _read(told.output, sandbox.root) if told.exit_code == 0 else None


def _tox_words(argv: Sequence[str]) -> int:
    """How many words at the beginning of a command start tox; 0 for other programs."""
    words = python_words(argv)
    named = list(argv[words : words + 2]) == ["-m", "tox"] if words else basename(argv[0]) == "tox"
    return (words + 2 if words else 1) if named else 0


def _parted(words: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
    """The options of tox, without the name of its subcommand; `--`; what comes after that."""
    end = words.index("--") if "--" in words else len(words)
    options = list(words[:end])
    if options and options[0] in _RUNS:
        del options[0]
    return options, list(words[end : end + 1]), list(words[end + 1 :])


def _read(told: str, root: str) -> tuple[str, ...] | None:
    told = told[max(told.find("[testenv"), 0) :]  # Before that, tox may say what it looks for.
    parser = configparser.ConfigParser(interpolation=None, strict=False, delimiters=("=",))
    try:
        parser.read_string(told)
        found = [_pytest_of(parser[name]) for name in parser.sections() if parser[name].get("change_dir") == root]
    except (configparser.Error, ValueError):
        return None
    return next((command for command in found if command), None)


def _pytest_of(section: configparser.SectionProxy) -> tuple[str, ...] | None:
    """The last pytest command of an environment, run by the environment's interpreter."""
    for line in reversed(section.get("commands", "").splitlines()):
        command = shlex.split(line)
        if command and is_pytest(command):
            words = python_words(command)
            return (section["env_python"], *(command[words:] if words else ["-m", "pytest", *command[1:]]))
    return None

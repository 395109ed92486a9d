"""Command lines: what a command is, which Python command is behind it, and how to put a program of ours in front of it.

The programs of `env/inside` run the project's own program: `debug_argv` puts one of them in front of it, and `Script`
starts those that take a request.
"""

from __future__ import annotations

import configparser
import json
import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from posixpath import basename
from typing import Any

from pydantic import TypeAdapter, ValidationError

from gumshoe.env.inside.loading import PACKAGE
from gumshoe.protocols import Sandbox, Workspace
from gumshoe.records import ExecResult
from gumshoe.tools.code.source import split_lines

PLAIN_OUTPUT = {"TERM": "dumb", "NO_COLOR": "1", "PYTHONUNBUFFERED": "1"}
"""Variables with which programs print plain text, and at once."""
NO_TRACEBACKS = "--tb=no"
"""The option with which pytest prints no tracebacks. Its plugins, ours among them, know of failures all the same."""

_PYTHON = re.compile(r"(.*/)?(python|pypy)[\d.]*$")
_ISOLATED = re.compile(r"-\w*[IE]\w*")
_WITH_VALUE = {"-W", "-X", "--check-hash-based-pycs"}
_PYTEST = {"pytest", "py.test"}
_TOX_S = 60.0
"""How long tox may take to say what it runs."""
_LAUNCHERS = {"timeout", "nice", "ionice", "time", "env", "stdbuf", "setsid", "nohup", "xvfb-run"}
"""Programs whose arguments end with the command that they run."""
_SHELL = re.compile(r"(.*/)?(ba|da|z)?sh$")
_ONE_COMMAND = re.compile(r"[^;&|<>()$`*?~\n]+")
"""A line of shell that is one plain command."""


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


def pytest_options(environment: Mapping[str, str], *options: str) -> str:
    """What PYTEST_ADDOPTS has to be so that options are added to those that are set."""
    return " ".join(filter(None, (environment.get("PYTEST_ADDOPTS"), *options)))


def debug_argv(sandbox: Sandbox, entrypoint: Sequence[str], program: str = "debugger.main") -> list[str]:
    """The command that runs `entrypoint` under a program of `env/inside`, the debugger unless another is named.

    `python` with its options becomes that interpreter running our program; any other entrypoint is left to our program
    to find, and must be a Python program.
    """
    words = python_words(entrypoint)
    ours = our_program(sandbox.support, program)
    return [*(entrypoint[:words] or [sandbox.python]), *ours, "--", *entrypoint[words:]]


def our_program(support: str, name: str) -> list[str]:
    """The words that follow an interpreter to run a program of `env/inside`, such as `runs.whatif`."""
    return [f"{support}/{PACKAGE}/__main__.py", name]


def our_plugin(name: str) -> str:
    """The option that has pytest load a module of `env/inside`, such as `runs.outcomes`."""
    return f"-p {PACKAGE}.{name}"


def python_behind(sandbox: Sandbox, argv: Sequence[str]) -> tuple[str, ...] | None:
    """The Python program that a command starts by way of tox, which is asked in the sandbox what it runs, or of another
    program; None if there is none to be seen.
    """
    return _behind_tox(sandbox, argv) or _behind_launcher(argv)


def _behind_launcher(argv: Sequence[str]) -> tuple[str, ...] | None:
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
        return words if words and _starts_python(words[0]) else _behind_launcher(words)
    if basename(argv[0]) not in _LAUNCHERS:
        return None
    start = next((index for index, word in enumerate(argv) if _starts_python(word)), None)
    return None if start is None or any("=" in word for word in argv[:start]) else tuple(argv[start:])


def _starts_python(word: str) -> bool:
    return bool(_PYTHON.match(word)) or basename(word) in _PYTEST


_OVERRIDE = "TOX_OVERRIDE"
_PASS = "testenv.pass_env+=GUMSHOE_*,PYTEST_ADDOPTS,PYTEST_PLUGINS,PYTHONPATH"
_RUNS = {"run", "r", "run-parallel", "p", "legacy", "le"}


def tox_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """The variable with which tox 4 lets pytest load our plugins, where `environment` has no such variable itself."""
    return {} if _OVERRIDE in environment else {_OVERRIDE: _PASS}


def _behind_tox(sandbox: Sandbox, argv: Sequence[str]) -> tuple[str, ...] | None:
    """The pytest command that a call of tox ends with, as tox 4 itself reports it (`tox config`).

    None where the command is not tox, or tox runs no pytest there, or runs it in another folder.
    """
    words = _tox_words(argv)
    if not words:
        return None
    options, dashes, rest = _parted(argv[words:])
    question = [*argv[:words], "config", *options, "-k", "commands", "env_python", "change_dir", *dashes, *rest]
    result = sandbox.run(question, timeout=_TOX_S)
    return _tox_command(result.output, sandbox.root) if result.exit_code == 0 else None


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


def _tox_command(printed: str, root: str) -> tuple[str, ...] | None:
    config = printed[max(printed.find("[testenv"), 0) :]  # Before that, tox may say what it looks for.
    parser = configparser.ConfigParser(interpolation=None, strict=False, delimiters=("=",))
    try:
        parser.read_string(config)
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


# - our programs that take a request, and what they write


_MARGIN_S = 2.0
_CHECK_TIMEOUT_S = 20.0
_PROBLEM = TypeAdapter(tuple[str, str, int | None])


class Script:
    """One of the programs that run the tests in their own way: `runs.suspects`, `runs.whatif` or `runs.trace`.

    Attributes:
        folder: where its request lies, and what it writes.
    """

    def __init__(self, workspace: Workspace, name: str) -> None:
        self._workspace = workspace
        self._name = name
        self.folder = f"{workspace.sandbox.support}/{name}"

    def run(self, request: Mapping[str, Any], options: str = "", seconds: float | None = None) -> ExecResult:
        """Runs the entrypoint under it, in the workspace, which is put back afterward. `folder` is emptied before.

        Args:
            request: without its `deadline_s`, which leaves it time to end before it is killed.
            options: of pytest, beside those that are set. It prints no tracebacks, since nobody reads them.
            seconds: its deadline, if that is to come before the task's limit for one command.
        """
        sandbox, timeout = self._workspace.sandbox, self._workspace.task.limits.command_timeout_s
        deadline = max(1.0, timeout - _MARGIN_S)
        sandbox.prepare_support()
        data = json.dumps({**request, "deadline_s": deadline if seconds is None else min(seconds, deadline)})
        sandbox.run(["rm", "-rf", self.folder], timeout=timeout)
        sandbox.write_file(f"{self.folder}/request.json", data.encode(), inside=False)
        before = sandbox.snapshot()
        argv = debug_argv(sandbox, self._workspace.debug_entrypoint, f"runs.{self._name}")
        addopts = pytest_options(sandbox.environment, options, NO_TRACEBACKS)
        variables = {"PYTEST_ADDOPTS": addopts, f"GUMSHOE_{self._name.upper()}": f"{self.folder}/request.json"}
        ran = sandbox.run(argv, env=variables, timeout=timeout + _MARGIN_S, warm=True)
        sandbox.restore(before)
        return ran

    def read(self, name: str) -> bytes:
        """A file that it wrote; nothing where it wrote nothing."""
        return read_written(self._workspace.sandbox, f"{self.folder}/{name}")


def read_written(sandbox: Sandbox, path: str) -> bytes:
    """What a program of ours wrote; nothing where it wrote nothing."""
    try:
        return sandbox.read_file(path, inside=False)
    except OSError:
        return b""


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

"""Programs in a sandbox: their command lines, and those of `env/inside` with their requests and what they write.

The programs of `env/inside` run the project's own program: `debug_argv` puts one of them in front of it. Those that
take a request, such as `runs.whatif`, are started by `run_script`. Outcomes of tests are written as JSON lines, which
`read_outcomes` reads.
"""

from __future__ import annotations

import io
import json
import re
import shlex
import signal
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from posixpath import basename
from typing import Any

from pydantic import TypeAdapter, ValidationError

from gumshoe.env.inside.loading import PACKAGE
from gumshoe.protocols import Sandbox, Workspace
from gumshoe.records import ExecResult, TestOutcome
from gumshoe.tools.code.source import split_lines

__all__ = [
    "NO_TRACEBACKS",
    "PLAIN_OUTPUT",
    "behind_launcher",
    "debug_argv",
    "describe_end",
    "end_running",
    "ignores_path",
    "is_pytest",
    "our_plugin",
    "our_program",
    "pytest_options",
    "python_words",
    "read_outcomes",
    "read_written",
    "run_script",
    "script_folder",
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
    return [f"{support}/{PACKAGE}/__main__.py", name]


def our_plugin(name: str) -> str:
    """The option that has pytest load a module of `env/inside`, such as `runs.outcomes`."""
    return f"-p {PACKAGE}.{name}"


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


_MARGIN_S = 2.0
FILE_BYTES, LINE_BYTES = 16 << 20, 64 << 10
UNREADABLE_LINES = 100
PENDING = ("not_run", "crashed")
"""What a record says of tests until their outcomes are known."""
_SIGNALS = {128 + each.value: each.name for each in signal.Signals}
NO_TRACEBACKS = "--tb=no"
"""The option with which pytest prints no tracebacks. Its plugins, ours among them, know of failures all the same."""


def script_folder(workspace: Workspace, name: str) -> str:
    """Where the request of a script lies, and what it writes."""
    return f"{workspace.sandbox.support}/{name}"


def run_script(
    workspace: Workspace, name: str, request: Mapping[str, Any], options: str = "", seconds: float | None = None
) -> ExecResult:
    """Runs the entrypoint under `runs.NAME`, whose folder is emptied before; the workspace is put back behind it.

    Args:
        workspace: where.
        name: of the script: `suspects`, `whatif` or `trace`.
        request: for the script, without its `deadline_s`, which leaves it time to end before it is killed.
        options: of pytest, beside those that are set. It prints no tracebacks, since nobody reads them.
        seconds: the script's deadline, if that is to come before the task's limit for one command.
    """
    sandbox, timeout = workspace.sandbox, workspace.task.limits.command_timeout_s
    deadline = max(1.0, timeout - _MARGIN_S)
    sandbox.prepare_support()
    folder = script_folder(workspace, name)
    data = json.dumps({**request, "deadline_s": deadline if seconds is None else min(seconds, deadline)})
    sandbox.run(["rm", "-rf", folder], timeout=timeout)
    sandbox.write_file(f"{folder}/request.json", data.encode(), inside=False)
    before = sandbox.snapshot()
    argv = debug_argv(sandbox, workspace.debug_entrypoint, f"runs.{name}")
    addopts = pytest_options(sandbox.environment, options, NO_TRACEBACKS)
    variables = {"PYTEST_ADDOPTS": addopts, f"GUMSHOE_{name.upper()}": f"{folder}/request.json"}
    ran = sandbox.run(argv, env=variables, timeout=timeout + _MARGIN_S, warm=True)
    sandbox.restore(before)
    return ran


def read_written(workspace: Workspace, path: str) -> bytes:
    """What a script wrote; nothing where it wrote nothing."""
    try:
        return workspace.sandbox.read_file(path, inside=False)
    except OSError:
        return b""


def pytest_options(environment: Mapping[str, str], *options: str) -> str:
    """What PYTEST_ADDOPTS has to be so that options are added to those that are set."""
    return " ".join(filter(None, (environment.get("PYTEST_ADDOPTS"), *options)))


def read_outcomes(data: bytes, exit_code: int | None) -> tuple[TestOutcome, ...]:
    """The outcomes in a file of JSON lines, the last of which counts for each test.

    A test whose lines differ in their outcome is an error, except for lines that say that it is `not_run` or `crashed`:
    these are written before its outcome is known. Otherwise a program that adds lines of its own could pass or
    fail a test, by chance even as a verdict asks for it: whose lines come last is a matter of time.

    A line that was cut off, or is no outcome of at most 64 KiB, is passed over; after 100 of those and after 16 MiB the
    rest is not read.

    Args:
        data: the file's content.
        exit_code: of the process that wrote it; None if it was killed for taking too long.
    """
    outcomes: dict[str, TestOutcome] = {}
    unreadable = 0
    for line in io.BytesIO(data[:FILE_BYTES]):
        try:
            outcome = TestOutcome.model_validate_json(line if len(line) <= LINE_BYTES else b"")
            known = outcomes.get(outcome.id)
            if known is None or known.outcome in PENDING or known.outcome == outcome.outcome:
                outcomes[outcome.id] = outcome
            elif outcome.outcome not in PENDING:
                outcomes[outcome.id] = _twice(outcome.id)
        except ValidationError:
            unreadable += 1
            if unreadable > UNREADABLE_LINES:
                break
    return end_running(outcomes.values(), exit_code)


def end_running(outcomes: Iterable[TestOutcome], exit_code: int | None) -> tuple[TestOutcome, ...]:
    """The outcomes; of a test that was still running when its process ended, it says how that came."""
    ended: dict[str, str] = {"outcome": "timed_out" if exit_code is None else "crashed"}
    ended["message"] = f"the process {describe_end(exit_code)}"
    return tuple(each.model_copy(update=ended) if each.outcome == "crashed" else each for each in outcomes)


def describe_end(exit_code: int | None) -> str:
    """What a process did at its end that has this exit code, None for one that was killed for taking too long."""
    if exit_code is None:
        return "took too long"
    ended_by = _SIGNALS.get(exit_code)
    return f"was ended by {ended_by}" if ended_by else f"ended with exit code {exit_code}"


def _twice(test: str) -> TestOutcome:
    return TestOutcome(id=test, outcome="error", message="the run gives this test different outcomes")

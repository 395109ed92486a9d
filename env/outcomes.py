"""Per-test outcomes of a test run: how tests are started so that each is recorded, and what became of them.

pytest loads a plugin of ours, other runners are run by a recorder. Behind tox, pytest writes outcomes if tox passes our
variables on, and if it is asked which command it runs. What unittest prints is read only for commands that may start a
runner which nothing of ours records, such as shell scripts. A program can forge it no more easily than a record: the
variants of the tests decide what either is worth (see `gumshoe.env.verifier`).
"""

from __future__ import annotations

import configparser
import posixpath
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from posixpath import basename

from gumshoe.protocols import Sandbox
from gumshoe.records import ExecResult, TestOutcome
from gumshoe.tools.runs.programs import (
    end_running,
    ignores_path,
    is_pytest,
    our_plugin,
    our_program,
    pytest_options,
    python_words,
    read_outcomes,
)

__all__ = ["Launch", "behind_tox", "launch", "outcomes_of", "parse_unittest", "record_variables"]

RECORD = "outcomes.jsonl"
RECORDER = "runs.unittest_runs"
SCRIPTS = ("runtests.py", "bin/test")
"""Endings of the scripts whose runners we know: Django's and sympy's."""
TEST = re.compile(r"^(?:  )?(?P<name>\w+) \((?P<place>[\w.]+)\)(?: \(.*\)| \[.*\])?(?P<rest> \.\.\. .*)?$")
SKIPPED = re.compile(r"skipped\b")
NEXT_TEST = re.compile(r" \.\.\. (?=\w+ \(\w+\.[\w.]+\)(?: \.\.\. |$))")
"""Where the next test begins on the line of one that has no verdict: before Python 3.11, one whose subtests fail."""
DOTS = " ... "
SECTION = re.compile(r"^(?:FAIL|ERROR): (?P<head>.+)$")
THICK, THIN = "=" * 70, "-" * 70
WORDS = {
    "ok": "passed",
    "FAIL": "failed",
    "ERROR": "error",
    "expected failure": "xfailed",
    "unexpected success": "xpassed",
}
TOTAL = re.compile(r"^Ran \d+ tests? in ")
"""What unittest prints when all tests are over."""
BROKEN = ("error", "failed")
WORST_FIRST = ("crashed", "error", "failed", "xpassed", "skipped", "xfailed", "passed")


def record_variables(sandbox: Sandbox, *plugins: str, options: str = "") -> dict[str, str]:
    """The variables with which pytest, or our recorder, writes what `outcomes_of` reads.

    Args:
        sandbox: where the tests are run.
        plugins: modules of `env/inside` for pytest to load too.
        options: more options of pytest.
    """
    known = sandbox.environment
    return {
        **_tox_variables(known),
        "GUMSHOE_OUTCOMES": posixpath.join(sandbox.support, RECORD),
        "PYTEST_ADDOPTS": pytest_options(known, *map(our_plugin, ("runs.outcomes", *plugins)), options),
        "PYTHONPATH": ":".join(filter(None, (sandbox.support, known.get("PYTHONPATH")))),
    }


@dataclass(frozen=True)
class Launch:
    """What is started.

    Attributes:
        argv: the command.
        script: the path of a script that is a test itself if it reports none.
        recorded: whether pytest or our recorder sees every test; what is printed then counts for nothing. Shell
            commands, and scripts that we do not know, may start any runner.
    """

    argv: tuple[str, ...]
    script: str | None = None
    recorded: bool = True


def launch(entrypoint: Sequence[str], support: str) -> Launch:
    """What runs an entrypoint's tests and records each of them.

    pytest loads a plugin, whatever starts it. Other modules, such as unittest, and Python scripts, such as Django's
    `runtests.py` and sympy's `bin/test`, are run by a recorder, and so is pytest on an interpreter that does not look
    for the plugin; a script that reports no tests is a test itself.

    Args:
        entrypoint: the task's argv.
        support: the folder with our package inside the sandbox.
    """
    recorder = our_program(support, RECORDER)
    words = python_words(entrypoint)
    if words:
        options, rest = entrypoint[:words], tuple(entrypoint[words:])
        if rest[:1] == ("-m",) and (not is_pytest(entrypoint) or ignores_path(entrypoint)):
            return Launch((*options, *recorder, "--", *rest), recorded=rest[1] in ("unittest", "pytest"))
        if rest and rest[0].endswith((".py", *SCRIPTS)):
            own_runner = rest[0].endswith(SCRIPTS)
            return Launch((*options, *recorder, "--", *rest), rest[0].removeprefix("./"), recorded=own_runner)
    elif entrypoint[0].endswith(SCRIPTS):
        return Launch(("python", *recorder, "--", *entrypoint), entrypoint[0].removeprefix("./"))
    return Launch(tuple(entrypoint), recorded=is_pytest(entrypoint))


def outcomes_of(sandbox: Sandbox, how: Launch, result: ExecResult) -> tuple[TestOutcome, ...]:
    """The outcomes of a run's tests; none if it wrote none, or if a program removed or replaced the record."""
    try:
        record = sandbox.read_file(posixpath.join(sandbox.support, RECORD), inside=False)
    except OSError:
        record = b""
    outcomes = read_outcomes(record, result.exit_code)
    return outcomes if outcomes or how.recorded else parse_unittest(result.output, result.exit_code)


def parse_unittest(output: str, exit_code: int | None) -> tuple[TestOutcome, ...]:
    """The outcomes in what `python -m unittest -v` printed, which ended with this exit code, None if it took too long;
    none where it is not that.
    """
    lines = output.splitlines()
    end = lines.index(THICK) if THICK in lines else len(lines)
    is_over = THICK in lines or any(map(TOTAL.match, lines))
    messages = dict(_messages(lines[end:]))
    found: dict[str, str] = dict.fromkeys(messages, "failed")
    for test, outcome in _verdicts(lines[:end], is_over=is_over):
        precise = test in messages and outcome in BROKEN
        known = outcome if precise else found.get(test, outcome)
        found[test] = min(known, outcome, key=WORST_FIRST.index)
    titles = dict(_titles(lines[:end]))
    made = (
        TestOutcome.model_validate(
            {"id": test, "outcome": outcome, "message": messages.get(test, ""), "title": titles.get(test, "")}
        )
        for test, outcome in found.items()
    )
    return end_running(made, exit_code)


def _verdicts(lines: Sequence[str], *, is_over: bool) -> Iterator[tuple[str, str]]:
    """Each test with its outcome. A verdict may come some lines below its test: docstrings and prints come between."""
    test: str | None = None
    running = False
    for line in chain.from_iterable(map(NEXT_TEST.split, lines)):
        head = TEST.match(line)
        if head:
            test, running = _identity(head), False
        running = running or DOTS in line
        verdict = _verdict(line)
        if verdict and test is not None:
            yield test, verdict
            test = None
    if test is not None and running and not is_over:
        yield test, "crashed"


def _titles(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each test that has a docstring, with its first line, which is below the test's name."""
    test: str | None = None
    for line in chain.from_iterable(map(NEXT_TEST.split, lines)):
        head = TEST.match(line)
        if test is not None and not head:
            yield test, line.partition(DOTS)[0]
        test = _identity(head) if head and not head["rest"] else None


def _verdict(line: str) -> str | None:
    """The outcome at the end of a line: the word alone, or after dots and whatever the test has printed there."""
    if DOTS not in line:
        return "skipped" if SKIPPED.match(line) else WORDS.get(line)
    last = line.rpartition(DOTS)[2]
    word = next((word for word in WORDS if last.endswith(word)), None)
    if SKIPPED.search(last) or (word is None and SKIPPED.search(line.partition(DOTS)[2])):
        return "skipped"
    return None if word is None else WORDS[word]


def _messages(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each failed test with its traceback."""
    rules = [number for number, line in enumerate(lines) if line in {THICK, THIN}]
    for index, rule in enumerate(rules):
        following, end = ([*rules[index + 1 : index + 3], len(lines), len(lines)])[:2]
        section = SECTION.match(lines[rule + 1]) if lines[rule] == THICK and rule + 1 < len(lines) else None
        head = TEST.match(section.group("head")) if section else None
        if head and following < len(lines) and lines[following] == THIN:
            yield _identity(head), "\n".join(lines[following + 1 : end]).strip()


def _identity(head: re.Match[str]) -> str:
    """The test's dotted name; Pythons before 3.11 leave the method out of the brackets."""
    name, place = head.group("name", "place")
    return place if place.endswith(f".{name}") else f"{place}.{name}"


_OVERRIDE = "TOX_OVERRIDE"
_PASS = "testenv.pass_env+=GUMSHOE_*,PYTEST_ADDOPTS,PYTEST_PLUGINS,PYTHONPATH"
_RUNS = {"run", "r", "run-parallel", "p", "legacy", "le"}


def _tox_variables(environment: Mapping[str, str]) -> dict[str, str]:
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
    result = sandbox.run(question, timeout=timeout)
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

"""Per-test outcomes of a test run: how tests are started so that each is recorded, and what became of them.

pytest loads a plugin of ours, other runners are run by a recorder. Behind tox, pytest writes outcomes if tox passes our
variables on, and if it is asked which command it runs. What unittest prints is read only for commands that may start a
runner which nothing of ours records, such as shell scripts. A program can forge it no more easily than a record: the
variants of the tests decide what either is worth (see `gumshoe.env.verifier`).
"""

from __future__ import annotations

import io
import posixpath
import re
import signal
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from pydantic import ValidationError

from gumshoe.protocols import Sandbox
from gumshoe.records import ExecResult, TestOutcome
from gumshoe.tools.runs.commands import (
    ignores_path,
    is_pytest,
    our_plugin,
    our_program,
    pytest_options,
    python_words,
    read_written,
    tox_variables,
)

RECORD = "outcomes.jsonl"
RECORDER = "runs.unittest_runs"
FILE_BYTES, LINE_BYTES = 16 << 20, 64 << 10
UNREADABLE_LINES = 100
PENDING = ("not_run", "crashed")
"""What a record says of tests until their outcomes are known."""
_SIGNALS = {128 + each.value: each.name for each in signal.Signals}
SCRIPTS = ("runtests.py", "bin/test")
"""Endings of the scripts whose runners we know: Django's and sympy's."""


def record_variables(sandbox: Sandbox, *plugins: str, options: str = "") -> dict[str, str]:
    """The variables with which pytest, or our recorder, writes what `outcomes_of` reads. `plugins` are further modules
    of `env/inside` for pytest to load.
    """
    known = sandbox.environment
    return {
        **tox_variables(known),
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


def plan_launch(entrypoint: Sequence[str], support: str) -> Launch:
    """What runs an entrypoint's tests and records each of them.

    pytest loads a plugin, whatever starts it. Other modules, such as unittest, and Python scripts, such as Django's
    `runtests.py` and sympy's `bin/test`, are run by a recorder, and so is pytest on an interpreter that does not look
    for the plugin; a script that reports no tests is a test itself. `support` is the folder of our package there.
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
    record = read_written(sandbox, posixpath.join(sandbox.support, RECORD))
    outcomes = read_outcomes(record, result.exit_code)
    return outcomes if outcomes or how.recorded else parse_unittest(result.output, result.exit_code)


def read_outcomes(data: bytes, exit_code: int | None) -> tuple[TestOutcome, ...]:
    """The outcomes in a file of JSON lines, the last of which counts for each test.

    A test whose lines differ in their outcome is an error, except for lines that say that it is `not_run` or `crashed`:
    these are written before its outcome is known. Otherwise a program that adds lines of its own could pass or
    fail a test, by chance even as a verdict asks for it: whose lines come last is a matter of time.

    A line that was cut off, or is no outcome of at most 64 KiB, is passed over; after 100 of those and after 16 MiB the
    rest is not read. The exit code is None if the process was killed for taking too long.
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
    return _end_running(outcomes.values(), exit_code)


def _end_running(outcomes: Iterable[TestOutcome], exit_code: int | None) -> tuple[TestOutcome, ...]:
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
    return _end_running(made, exit_code)


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

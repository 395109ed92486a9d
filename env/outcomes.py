"""Per-test outcomes of a test run: what our pytest plugin wrote, or what unittest's or sympy's runner printed.

For looking around only: a verdict takes no outcome from what a program prints (see `gumshoe.env.verifier`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from pydantic import ValidationError

from gumshoe.records import TestOutcome

__all__ = ["parse_sympy", "parse_unittest", "read_outcomes"]

TEST = re.compile(r"^(?:  )?(?P<name>\w+) \((?P<place>[\w.]+)\)(?: \(.*\)| \[.*\])?(?P<rest> \.\.\. .*)?$")
VERDICT = re.compile(r"^(?:.* \.\.\. .*?)?(ok|FAIL|ERROR|skipped\b.*|expected failure|unexpected success)$")
SECTION = re.compile(r"^(?:FAIL|ERROR): (?P<head>.+)$")
THICK, THIN = "=" * 70, "-" * 70
WORDS = {
    "ok": "passed",
    "FAIL": "failed",
    "ERROR": "error",
    "expected failure": "xfailed",
    "unexpected success": "xpassed",
}
SYMPY_FILE = re.compile(r"^(?P<path>\S+\.py)\[\d+\]\s*$")
SYMPY_TEST = re.compile(r"^(?P<name>test_\w+) (?:.* )?(?P<word>ok|F|E|f|X|s|w)(?: .*)?$")
SYMPY_WORDS = {
    "ok": "passed",
    "F": "failed",
    "E": "error",
    "f": "xfailed",
    "X": "xpassed",
    "s": "skipped",
    "w": "skipped",
}
WORST_FIRST = ("error", "failed", "xpassed", "skipped", "xfailed", "passed")


def read_outcomes(data: bytes) -> tuple[TestOutcome, ...]:
    """The outcomes in a file of JSON lines, the last one of each test. A line that was cut off is passed over."""
    outcomes: dict[str, TestOutcome] = {}
    for line in data.decode("utf-8", "replace").splitlines():
        try:
            outcome = TestOutcome.model_validate(json.loads(line))
        except (ValueError, ValidationError):
            continue
        outcomes[outcome.id] = outcome
    return tuple(outcomes.values())


def parse_unittest(output: str) -> tuple[TestOutcome, ...]:
    """The outcomes in what `python -m unittest -v` printed; none where it is not that."""
    lines = output.splitlines()
    end = lines.index(THICK) if THICK in lines else len(lines)
    messages = dict(_messages(lines[end:]))
    found: dict[str, str] = dict.fromkeys(messages, "failed")
    for test, outcome in _verdicts(lines[:end]):
        known = found.get(test, outcome) if test not in messages else outcome
        found[test] = min(known, outcome, key=WORST_FIRST.index)
    return tuple(
        TestOutcome.model_validate({"id": test, "outcome": outcome, "message": messages.get(test, "")})
        for test, outcome in found.items()
    )


def parse_sympy(output: str) -> tuple[TestOutcome, ...]:
    """The outcomes in what sympy's `bin/test --verbose` printed; none where it is not that."""
    path = ""
    found: dict[str, str] = {}
    for line in output.splitlines():
        file = SYMPY_FILE.match(line)
        test = SYMPY_TEST.match(line)
        if file:
            path = file["path"]
        elif test and path:
            found[f"{path}::{test['name']}"] = SYMPY_WORDS[test["word"]]
    return tuple(TestOutcome.model_validate({"id": test, "outcome": outcome}) for test, outcome in found.items())


def _verdicts(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each test with its outcome. A verdict may stand lines below its test: docstrings and prints come between."""
    test: str | None = None
    for line in lines:
        head = TEST.match(line)
        if head:
            test = _identity(head)
        verdict = VERDICT.match(line)
        if verdict and test is not None:
            word = verdict.group(1)
            yield test, "skipped" if word.startswith("skipped") else WORDS[word]
            test = None


def _messages(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each failed test with its traceback."""
    for number, line in enumerate(lines):
        section = SECTION.match(line)
        head = TEST.match(section.group("head")) if section else None
        if head and number and lines[number - 1] == THICK and THIN in lines[number:]:
            start = lines.index(THIN, number) + 1
            ends = [place for place in range(start, len(lines)) if lines[place] in {THICK, THIN}]
            yield _identity(head), "\n".join(lines[start : ends[0] if ends else len(lines)]).strip()


def _identity(head: re.Match[str]) -> str:
    """The test's dotted name; Pythons before 3.11 leave the method out of the brackets."""
    name, place = head.group("name", "place")
    return place if place.endswith(f".{name}") else f"{place}.{name}"

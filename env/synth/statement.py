"""The problem statement of a synthetic bug: what fails and how, as a test run shows it, and nothing about the cause."""

from __future__ import annotations

from collections.abc import Mapping

from gumshoe.env.synth.verify import FailedTest

__all__ = ["problem_statement"]

MESSAGE_LINES = 6
MESSAGE_CHARS = 400


def problem_statement(failures: Mapping[str, FailedTest]) -> str:
    """What a user who ran the tests would report. `failures` maps test ids, in the order of the run, to facts."""
    first, others = next(iter(failures)), len(failures) - 1
    lines = [f"{first} fails:", "", *_indented(failures[first].message), ""]
    if others:
        lines += ["So does one other test." if others == 1 else f"So do {others} other tests.", ""]
    lines += ["The tests are right. Find the cause and repair it.", ""]
    return "\n".join(lines)


def _indented(message: str) -> list[str]:
    lines = message[:MESSAGE_CHARS].rstrip().splitlines()
    cut = len(lines) > MESSAGE_LINES or len(message) > MESSAGE_CHARS
    shown = [f"    {line}".rstrip() for line in lines[:MESSAGE_LINES]]
    return [*shown, "    ..."] if cut else shown

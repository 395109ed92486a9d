"""The problem statement of a made bug: what fails and how, as a test run shows it, and nothing of the cause."""

from __future__ import annotations

from collections.abc import Mapping

from gumshoe.env.synth.verify import Failure

__all__ = ["problem_statement"]

MESSAGE_LINES = 12
MESSAGE_CHARS = 600
NAMED = 4


def problem_statement(failures: Mapping[str, Failure]) -> str:
    """What a user would report who ran the tests. `failures` maps test ids, in the order of the run, to facts."""
    tests = list(failures)
    first, others = tests[0], tests[1:]
    lines = [f"{first} fails:", "", *_indented(failures[first].message), ""]
    if others:
        named = ", ".join(others[:NAMED])
        more = f" and {len(others) - NAMED} more" if len(others) > NAMED else ""
        lines += [f"So {'does' if len(others) == 1 else 'do'} {named}{more}.", ""]
    lines += ["The tests are right. Find the cause and repair it.", ""]
    return "\n".join(lines)


def _indented(message: str) -> list[str]:
    lines = message[:MESSAGE_CHARS].rstrip().splitlines()
    cut = len(lines) > MESSAGE_LINES or len(message) > MESSAGE_CHARS
    shown = [f"    {line}".rstrip() for line in lines[:MESSAGE_LINES]]
    return [*shown, "    ..."] if cut else shown

"""What a model reads of an exchange with the debugger: where it stopped, what commands said, what was printed."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gumshoe.text import cut, cut_line, plain_text
from gumshoe.tools.debugger.answers import CommandResult, DebuggerStop, SourceLine

__all__ = ["describe_results", "program_output"]

_OUTPUT_LIMIT = 600
_LINE_LIMIT = 200
_PROGRESS = re.compile(r"[.FEsxXpP,]*\s*(\[\s*\d+%\]\s*)?")


def describe_results(results: Sequence[CommandResult]) -> list[str]:
    """What each command printed, in order; only the last stop is shown with its source."""
    stops = [result.stop for result in results if result.stop is not None]
    lines: list[str] = []
    for result in results:
        if result.output:
            lines.append(result.output)
        if result.stop is not None:
            lines += _describe_stop(result.stop, brief=result.stop is not stops[-1])
    return lines


def _describe_stop(stop: DebuggerStop, *, brief: bool) -> list[str]:
    """`> path:line in function (why)`, then the exception, the returned value, and the lines around."""
    lines = [f"> {stop.path}:{stop.line} in {stop.function}{_why(stop)}"]
    lines += [str(text) for text in (stop.note, stop.exception) if text]
    if stop.value is not None:
        lines.append(f"returns {stop.value}")
    return lines if brief else lines + _source(stop.source, stop.line)


def _why(stop: DebuggerStop) -> str:
    match stop.reason:
        case "breakpoint":
            return f" (breakpoint {stop.breakpoint})"
        case "raised":
            return f" (raised, breakpoint {stop.breakpoint})"
        case "post-mortem":
            elsewhere = stop.test is not None and stop.test != f"{stop.path}::{stop.function}"
            return f" (post-mortem of {stop.test})" if elsewhere else " (post-mortem)"
        case "step" | "return" | "frame":
            return ""
        case _:
            return f" ({stop.reason})"


def _source(source: Sequence[SourceLine], current: int) -> list[str]:
    shown = list(source)
    while shown and shown[-1][0] != current and not shown[-1][1].strip():
        shown.pop()
    while shown and shown[0][0] != current and not shown[0][1].strip():
        shown.pop(0)
    width = len(str(shown[-1][0])) if shown else 1
    return [
        f"{'->' if number == current else '  '}{number:>{width}} {cut_line(text, _LINE_LIMIT)}".rstrip()
        for number, text in shown
    ]


def program_output(printed: str) -> str:
    """What the program printed, without terminal codes and progress dots, cut to its head and tail."""
    kept = [line for line in plain_text(printed).split("\n") if line and not _PROGRESS.fullmatch(line)]
    return cut("\n".join(kept), _OUTPUT_LIMIT)[0]

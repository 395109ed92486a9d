"""What a model reads of an exchange with the debugger: where it stopped, what commands said, what was printed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from gumshoe.text import cut, cut_line, plain_text

__all__ = ["describe_results", "describe_stop", "program_output"]

_OUTPUT_LIMIT = 600
_LINE_LIMIT = 200
_PROGRESS = re.compile(r"[.FEsxXpP,]*\s*(\[\s*\d+%\]\s*)?")


def describe_results(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """What each command said, in order; only the last stop is shown with its source."""
    stops = [index for index, result in enumerate(results) if result.get("stop")]
    lines: list[str] = []
    for index, result in enumerate(results):
        if result["output"]:
            lines.append(str(result["output"]))
        if result.get("stop"):
            lines += describe_stop(result["stop"], brief=index != stops[-1])
    return lines


def describe_stop(stop: Mapping[str, Any], *, brief: bool = False) -> list[str]:
    """`> path:line in function (why)`, then the exception, the returned value, and the lines around."""
    lines = [f"> {stop['path']}:{stop['line']} in {stop['function']}{_why(stop)}"]
    if stop.get("note"):
        lines.append(str(stop["note"]))
    if stop.get("exception"):
        lines.append(str(stop["exception"]))
    if "value" in stop:
        lines.append(f"returns {stop['value']}")
    if not brief:
        lines += _source(stop["source"], stop["line"])
    return lines


def _why(stop: Mapping[str, Any]) -> str:
    reason = stop["reason"]
    if reason in ("breakpoint", "raised"):
        return f" ({'raised, ' if reason == 'raised' else ''}breakpoint {stop.get('breakpoint')})"
    if reason == "post-mortem":
        here = f"{stop['path']}::{stop['function']}"
        return f" (post-mortem of {stop['test']})" if stop.get("test", here) != here else " (post-mortem)"
    return "" if reason in ("step", "return", "frame") else f" ({reason})"


def _source(source: Sequence[Sequence[Any]], current: int) -> list[str]:
    shown = list(source)
    while shown and shown[-1][0] != current and not str(shown[-1][1]).strip():
        shown.pop()
    while shown and shown[0][0] != current and not str(shown[0][1]).strip():
        shown.pop(0)
    width = len(str(shown[-1][0])) if shown else 1
    return [
        f"{'->' if number == current else '  '}{number:>{width}} {cut_line(str(text), _LINE_LIMIT)}".rstrip()
        for number, text in shown
    ]


def program_output(printed: str) -> str:
    """What the program printed, without terminal codes and progress dots, cut to its head and tail."""
    kept = [line for line in plain_text(printed).split("\n") if line and not _PROGRESS.fullmatch(line)]
    return cut("\n".join(kept), _OUTPUT_LIMIT)[0]

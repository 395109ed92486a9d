"""What the debugger sends, checked: the code under test runs in the same process and may write anything there.

And what a model reads of it: where the program stopped, what commands said, what was printed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from gumshoe.records import DebugFrame
from gumshoe.text import cut, cut_line, plain_text

__all__ = [
    "Announcement",
    "Answer",
    "BreakpointState",
    "CommandResult",
    "DebuggerStop",
    "describe_results",
    "program_output",
    "read_announcement",
    "read_answer",
]

LONGEST = 1 << 20
"""Characters of an answer; the debugger shortens whatever it shows."""
MOST, MOST_BREAKPOINTS = 1000, 200
Line = Annotated[int, Field(ge=0, lt=1 << 31)]
SourceLine = tuple[Line, str]
_OUTPUT_LIMIT = 600
_LINE_LIMIT = 200
_PROGRESS = re.compile(r"[.FEsxXpP,]*\s*(\[\s*\d+%\]\s*)?")


class _Part(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True, frozen=True)

    def data(self, without: str = "") -> dict[str, Any]:
        """The part as it was sent, without one of its fields."""
        return self.model_dump(mode="json", exclude_unset=True, exclude={without} if without else None)


class DebuggerStop(_Part):
    """Where the program stopped and why, with the lines around; `value` is the repr of what a function returns."""

    path: str
    line: Line
    function: str
    reason: str
    source: list[Annotated[SourceLine, Field(strict=False)]] = Field(max_length=MOST)
    breakpoint: JsonValue = None
    test: str | None = None
    note: JsonValue = None
    exception: JsonValue = None
    value: JsonValue = None


class CommandResult(_Part):
    """What one command printed, and where the program stopped after it."""

    command: str
    output: str
    stop: DebuggerStop | None = None
    failed: JsonValue = None


class BreakpointState(_Part):
    """A breakpoint, logpoint or `catch` as the debugger describes it (`breakpoints.FACTS` there).

    Attributes:
        path, line: its place; empty and 0 for a `catch`.
        ignore: how many more times it is passed over.
        log: the expression whose value a logpoint notes.
        catch: the name of the type that a `catch` stops at, `*` for any.
        hits: how often it was reached, except where its condition was false.
        problem: why it cannot be hit.
    """

    number: Line
    path: str
    line: Line
    condition: str | None = None
    temporary: bool = False
    ignore: Line = 0
    enabled: bool = True
    log: str | None = None
    catch: str | None = None
    hits: Line = 0
    problem: str | None = None


class Announcement(_Part):
    """What is announced before the program goes on, since it may never answer: breakpoints, and results so far."""

    breakpoints: list[BreakpointState] = Field(max_length=MOST_BREAKPOINTS)
    results: list[CommandResult] = Field(max_length=MOST)


class Answer(Announcement):
    """The debugger's answer to a request.

    Attributes:
        state: what became of the program. `stale`: its code was `changed` on disk; `restart`: it is to be started
            again, for the `rest` of the commands.
        results: one per command.
        stop, frames, index: where it is, its frames, and which of these is looked at.
    """

    state: Literal["ready", "stopped", "exited", "stale", "restart"]
    stop: DebuggerStop | None = None
    frames: list[DebugFrame] = Field(max_length=MOST)
    index: Line | None = None
    exit_code: int | None = None
    checkpoints: list[str] = []
    changed: list[str] = []
    rest: list[str] = []


def read_answer(message: Mapping[str, JsonValue]) -> Answer | None:
    """An answer; None if the message is none."""
    return _read(Answer, message)


def read_announcement(message: Mapping[str, JsonValue]) -> Announcement | None:
    """An announcement; None if the message is none."""
    return _read(Announcement, message)


PartT = TypeVar("PartT", bound=_Part)


def _read(kind: type[PartT], message: Mapping[str, JsonValue]) -> PartT | None:
    if len(json.dumps(message)) > LONGEST:
        return None
    try:
        return kind.model_validate(dict(message))
    except ValidationError:
        return None


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

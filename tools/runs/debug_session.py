"""One debugged program: the debugger in the sandbox, the requests to it, and its answers.

These are checked: the code under test runs in the same process and may write anything there.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from gumshoe.errors import ToolFailure
from gumshoe.protocols import Session, Workspace
from gumshoe.records import DebugFrame, SessionReply
from gumshoe.text import cut, cut_line, plain_text
from gumshoe.tools.code.source import count_common, split_lines
from gumshoe.tools.runs.commands import PLAIN_OUTPUT, debug_argv

_GRACE_S = 5.0
_START_TIMEOUT_S = 60.0
MOST_COMPARED = 4_000_000
"""Lines before times lines after: what repeats itself takes time in proportion."""
LIKENESS, MOST_LIKE = 0.6, 200
"""How like a line must be to be taken for the old one (`SequenceMatcher.ratio`), and how many are looked at."""


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


@dataclass
class Exchange:
    """What came of one request. `answer` is None when the program ended or was killed before it could answer."""

    answer: Answer | None
    output: str = ""
    timed_out: bool = False
    killed: bool = False
    exit_code: int | None = None
    announced: Announcement | None = None
    """What was announced before the program went on."""


class DebugSession:
    """A running debugger, with the breakpoints that the host keeps. It ends with the program; a new one begins anew."""

    def __init__(self, workspace: Workspace, breakpoints: Sequence[BreakpointState]) -> None:
        sandbox = workspace.sandbox
        argv = debug_argv(sandbox, workspace.debug_entrypoint)
        self._session: Session = sandbox.open_session(argv, env=PLAIN_OUTPUT, warm=True)
        self.ended = False
        self._clean_snapshot: str | None = None
        self.start = self.request(_START_TIMEOUT_S, breakpoints=[each.data() for each in breakpoints])
        if self.start.answer is None:
            self.close()
            why = self.start.output.strip()[-500:] or "it took too long"
            raise ToolFailure("no_debugger", f"the debugger did not start: {why}")

    def request(self, timeout: float, **fields: Any) -> Exchange:
        """Sends a request and waits for its answer; after `timeout` seconds the program is interrupted."""
        self._clean_snapshot = None
        exchange = Exchange(None)
        if not self._take(exchange, self._session.request(fields, timeout)):
            self._interrupt(exchange)
        return exchange

    def save_state(self, name: str) -> str | None:
        """Saves the paused program as it is now, for `restore_state`, beyond its end.

        Returns the name of what was saved: an earlier one if nothing was asked of the program since. None if it cannot
        be saved.
        """
        if self._clean_snapshot is None:
            exchange = self.request(_GRACE_S, lines=[f"__hold__ {name}"])
            self._clean_snapshot = name if self._succeeded(exchange) else None
        return self._clean_snapshot

    def restore_state(self, name: str, breakpoints: Sequence[BreakpointState]) -> bool:
        """Makes the program what it was at `save_state`, with these breakpoints; false if that is gone."""
        lines = [] if self._clean_snapshot == name else [f"restore {name}"]
        exchange = self.request(_GRACE_S, lines=lines, breakpoints=[each.data() for each in breakpoints])
        back = self._succeeded(exchange)
        self.ended = not back
        self._clean_snapshot = name if back else None
        return back

    @staticmethod
    def _succeeded(exchange: Exchange) -> bool:
        answer = exchange.answer
        return answer is not None and answer.state == "stopped" and not any(each.failed for each in answer.results)

    def _interrupt(self, exchange: Exchange) -> None:
        """Stops a program that runs too long where it is; one that does not stop is killed."""
        exchange.timed_out = True
        self._session.interrupt()
        if not self._take(exchange, self._session.wait_message(_GRACE_S)):
            exchange.killed = True
            self.close()

    def _take(self, exchange: Exchange, reply: SessionReply) -> bool:
        """Takes in a reply; false when the time was up before the answer came or the program ended.

        What the debugger's process sends is checked: the code under test runs in the same process.
        """
        exchange.output += reply.output
        for message in reply.interim:
            exchange.announced = read_announcement(message) or exchange.announced
        if reply.timed_out:
            return False
        if reply.message is not None and type(reply.message.get("gone")) is int:
            reply = reply.model_copy(update={"message": None, "exit_code": reply.message["gone"]})
        answer = exchange.answer = None if reply.message is None else read_answer(reply.message)
        exchange.exit_code = reply.exit_code if answer is None else answer.exit_code
        self.ended = answer is None or answer.state == "exited"
        if answer is None and reply.message is not None:
            exchange.killed = True
            self.close()
        return True

    def close(self) -> None:
        """Kills the program. Idempotent."""
        self.ended = True
        self._session.close()


def follow(
    breakpoints: Sequence[BreakpointState], path: str, before: str | None, after: str | None
) -> tuple[list[BreakpointState], list[str]]:
    """The breakpoints when a file has changed: those that are left, and a word for each that was dropped."""
    if not any(point.path == path for point in breakpoints):
        return list(breakpoints), []
    old, new = split_lines(before or ""), split_lines(after or "")
    kept: list[BreakpointState] = []
    dropped: list[str] = []
    for point in breakpoints:
        line = moved_line(old, new, point.line) if point.path == path else point.line
        if line is None:
            dropped.append(f"breakpoint {point.number} dropped: line {path}:{point.line} is gone")
        else:
            kept.append(point.model_copy(update={"line": line}))
    return kept, dropped


def moved_line(before: Sequence[str], after: Sequence[str], line: int) -> int | None:
    """Where `line` (from 1) of `before` is in `after`; None when it is gone.

    A line inside a block that was rewritten goes to the line of the new block that is most like it, or stays at its
    place in the block, if the new block is long enough. Where too much was rewritten to compare, lines between the
    first and the last change are gone.
    """
    head = count_common(before, after)
    tail = count_common(before[head:][::-1], after[head:][::-1])
    if line <= head:
        return line
    if len(before) - tail < line <= len(before):
        return line - len(before) + len(after)
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    if len(old) * len(new) > MOST_COMPARED:
        return None
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for _, old_start, old_end, new_start, new_end in matcher.get_opcodes():
        if old_start <= line - 1 - head < old_end:
            place = new_start + (line - 1 - head - old_start)
            if old_end - old_start != new_end - new_start or old[line - 1 - head] != new[place]:
                place = _most_like(old[line - 1 - head], new, new_start, new_end, place)
            return head + place + 1 if place < new_end else None
    return None


def _most_like(text: str, lines: Sequence[str], start: int, end: int, otherwise: int) -> int:
    """The index of the line from `start` to `end` that is most like `text`; `otherwise` where none is like it."""
    matcher = difflib.SequenceMatcher(None, "", text.strip(), autojunk=False)
    best, found = LIKENESS, otherwise
    for index in sorted(range(start, min(end, start + MOST_LIKE)), key=lambda index: abs(index - otherwise)):
        matcher.set_seq1(lines[index].strip())
        if matcher.real_quick_ratio() > best and matcher.quick_ratio() > best and matcher.ratio() > best:
            best, found = matcher.ratio(), index
    return found


# - what a model reads


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

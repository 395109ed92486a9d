"""One debugged program: starts the debugger in the sandbox and exchanges requests with it."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gumshoe.errors import ToolFailure
from gumshoe.protocols import Session, Workspace
from gumshoe.records import SessionReply
from gumshoe.tools.code.source import count_common, split_lines
from gumshoe.tools.runs.commands import PLAIN_OUTPUT, debug_argv
from gumshoe.tools.runs.debugger_answers import Announcement, Answer, BreakpointState, read_announcement, read_answer

__all__ = ["DebugSession", "Exchange", "follow", "moved_line"]

_GRACE_S = 5.0
_START_TIMEOUT_S = 60.0
MOST_COMPARED = 4_000_000
"""Lines before times lines after: what repeats itself takes time in proportion."""
LIKENESS, MOST_LIKE = 0.6, 200
"""How like a line must be to be taken for the old one (`SequenceMatcher.ratio`), and how many are looked at."""


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
    """A running debugger. It ends with the program; a new session begins anew.

    Args:
        workspace: says what to debug.
        breakpoints: those that the host keeps.
    """

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

"""`pdb`: run the tests under a debugger and look at what the program does."""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass
from typing import Any

from gumshoe.errors import ToolFailure
from gumshoe.protocols import Workspace
from gumshoe.records import Edit, Observation
from gumshoe.tools.base import BaseTool
from gumshoe.tools.runs.debug_session import (
    Answer,
    BreakpointState,
    CommandResult,
    DebugSession,
    Exchange,
    describe_results,
    follow,
    program_output,
)
from gumshoe.tools.runs.outcomes import describe_end


@dataclass(frozen=True)
class _State:
    """A debugger as it was: its breakpoints, the texts of the files in which they are, what is to be said with the next
    answer, and the paused program, if there was one that could be saved.
    """

    breakpoints: tuple[BreakpointState, ...]
    texts: dict[str, str]
    notes: tuple[str, ...]
    session: DebugSession | None
    saved_as: str
    is_whole: bool


class Debug(BaseTool):
    """A pdb whose session begins on demand, outlives timeouts and keeps its breakpoints outside the program.

    An edit ends the session, since the program would run stale code; the next command begins a new one. Test runs
    (`eval`) happen beside it and leave it as it is.
    """

    name = "pdb"

    def __init__(self) -> None:
        super().__init__()
        self._session: DebugSession | None = None
        self._breakpoints: list[BreakpointState] = []
        self._texts: dict[str, str] = {}
        self._notes: list[str] = []
        self._saved: list[DebugSession] = []
        self._save_names = itertools.count()

    def run(self, workspace: Workspace, command: str) -> Observation:
        """Debug the tests. Stops at breakpoints and failing tests.

        Args:
            command: pdb commands, one per line: b FILE:LINE[, CONDITION], c, n, s, r, p EXPR, locals, w, u, d, cl,
                log FILE:LINE, EXPR (notes values, does not stop), watch EXPR (stops when it changes in this function),
                catch TYPE (stops where it is raised), checkpoint NAME, restore NAME, restart, q
        """
        if not command.strip():
            raise ToolFailure("bad_arguments", f"command is empty. Usage: {self.signature.usage}")
        exchange = self._exchange(workspace, [command])
        return self._observe(exchange)

    def _exchange(self, workspace: Workspace, lines: list[str]) -> Exchange:
        """Runs commands. The answer's `state` says whether the program can go on:

        - `stale`: its code was changed on disk. It ends, and a new one gets all the commands.
        - `restart`: one of the commands said so. It ends, and a new one gets the `rest` of them.
        - no answer: the process has ended. What it `announced` before it last went on is all that is known of it,
          breakpoints and results, and makes an answer with the state `exited`.
        """
        deadline = time.monotonic() + workspace.task.limits.command_timeout_s
        results: list[CommandResult] = []
        while True:
            session = self._running(workspace)
            exchange = session.request(max(0.0, deadline - time.monotonic()), lines=lines)
            answer = exchange.answer
            if answer is None:
                if exchange.announced is not None:
                    self._take_breakpoints(workspace, exchange.announced.breakpoints)
                    results += exchange.announced.results
                exchange.answer = Answer(state="exited", breakpoints=[], results=results, frames=[])
                break
            if answer.state == "stale":
                self._notes += [f"restarted: {path} was changed" for path in answer.changed]
                self._end()
                continue
            self._take_breakpoints(workspace, answer.breakpoints)
            results += answer.results
            exchange.answer = answer.model_copy(update={"results": results})
            if answer.state != "restart":
                break
            lines = answer.rest
            self._end()
        if session.ended:
            self._end()
        return exchange

    def _running(self, workspace: Workspace) -> DebugSession:
        """The session; a new one where there is none."""
        if self._session is None:
            self._move_breakpoints(workspace)
            self._session = DebugSession(workspace, self._breakpoints)
            assert self._session.start.answer is not None
            self._take_breakpoints(workspace, self._session.start.answer.breakpoints)
        return self._session

    def _take_breakpoints(self, workspace: Workspace, breakpoints: list[BreakpointState]) -> None:
        """Takes over the debugger's breakpoints, and remembers the text of the files in which they are."""
        self._breakpoints = breakpoints
        paths = {point.path for point in breakpoints if point.path}
        for path in paths - set(self._texts):
            self._texts[path] = _text(workspace, path)
        for path in set(self._texts) - paths:
            del self._texts[path]

    def _move_breakpoints(self, workspace: Workspace) -> None:
        """Moves breakpoints with code that was changed since they were set."""
        for path, before in list(self._texts.items()):
            after = _text(workspace, path)
            if after != before:
                self._follow(path, before, after)

    def _follow(self, path: str, before: str | None, after: str | None) -> None:
        """Moves the breakpoints of a file that was changed."""
        self._breakpoints, dropped = follow(self._breakpoints, path, before, after)
        self._notes += dropped
        self._texts[path] = after or ""

    def _observe(self, exchange: Exchange) -> Observation:
        answer = exchange.answer
        assert answer is not None
        printed = program_output(exchange.output)
        lines = [*self._notes, *describe_results(answer.results), *_ending(exchange, answer)]
        self._notes = []
        if printed:
            lines += ["output:", printed]
        data = {
            "state": answer.state,
            "results": [_without_source(result) for result in answer.results],
            "stop": None if answer.stop is None else answer.stop.data(),
            "frames": [frame.model_dump() for frame in answer.frames],
            "index": answer.index,
            "breakpoints": [point.data() for point in self._breakpoints],
            "checkpoints": answer.checkpoints,
            "program_output": printed,
            "exit_code": exchange.exit_code,
            "timed_out": exchange.timed_out,
        }
        return self.observe("\n".join(lines) or "done", data)

    def marks(self, path: str) -> frozenset[int]:
        """Lines with breakpoints."""
        clean = path.removeprefix("./")
        return frozenset(point.line for point in self._breakpoints if point.path == clean)

    def snapshot(self, workspace: Workspace) -> _State:
        """The breakpoints, and the paused program, which is kept in its own process. A program with threads, or that
        has not begun, starts anew after `restore`.
        """
        name = f"snapshot-{next(self._save_names)}"
        saved_as = None if self._session is None else self._session.save_state(name)
        session = None if saved_as is None else self._session
        if session is not None and session not in self._saved:
            self._saved.append(session)
        is_whole = session is self._session
        texts, notes = dict(self._texts), tuple(self._notes)
        return _State(tuple(self._breakpoints), texts, notes, session, saved_as or "", is_whole)

    def restore(self, state: _State, workspace: Workspace) -> None:
        """Goes back, to the paused program too."""
        if self._session is not state.session:
            self._end()
        self._breakpoints = list(state.breakpoints)
        self._texts, self._notes = dict(state.texts), list(state.notes)
        if state.session is not None:
            self._session = state.session
            if not self._session.restore_state(state.saved_as, self._breakpoints):
                self._saved.remove(self._session)
                self._end()
                self._notes.append("restarted: the paused program could not be kept")

    def is_whole(self, state: _State) -> bool:
        """Whether no program was paused, or it could be kept."""
        return state.is_whole

    def on_reset(self, workspace: Workspace) -> None:
        """Forgets everything."""
        self.close()
        self._breakpoints = []
        self._texts, self._notes = {}, []

    def on_edit(self, edit: Edit, workspace: Workspace) -> None:
        """Moves the breakpoints of the file, and ends a program that would run stale code."""
        if edit.path in self._texts:
            self._follow(edit.path, edit.before, edit.after)
        if self._session is not None and edit.path.endswith(".py"):
            self._end()
            self._notes.append(f"restarted: {edit.path} was changed")

    def close(self) -> None:
        """Ends the program, and those that snapshots keep."""
        saved, self._saved = self._saved, []
        self._end()
        for session in saved:
            session.close()

    def _end(self) -> None:
        """Ends the program; one that a snapshot keeps waits."""
        session, self._session = self._session, None
        if session is not None and session not in self._saved:
            session.close()


def _without_source(result: CommandResult) -> dict[str, Any]:
    """A command's result as it is kept: the source around each of many stops says nothing new."""
    return result.data() if result.stop is None else {**result.data(), "stop": result.stop.data(without="source")}


def _text(workspace: Workspace, path: str) -> str:
    """The text of a file; empty where it cannot be read any more."""
    try:
        return workspace.read_text(path)
    except ToolFailure:
        return ""


def _ending(exchange: Exchange, answer: Answer) -> list[str]:
    """How the exchange ended, where that is not plain from the stop."""
    lines: list[str] = []
    if exchange.killed:
        lines.append("timed out, and could not be interrupted: the program was killed; breakpoints are kept")
    elif exchange.timed_out:
        lines.append("timed out: interrupted")
    elif answer.state == "exited":
        lines.append(f"program {describe_end(exchange.exit_code)}")
    return lines

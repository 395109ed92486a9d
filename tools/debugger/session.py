"""One debugged program: starts the debugger in the sandbox and exchanges requests with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gumshoe.errors import ToolFailure
from gumshoe.protocols import Session, Workspace
from gumshoe.records import SessionReply
from gumshoe.tools.debugger.answers import Announcement, Answer, read_announcement, read_answer
from gumshoe.tools.runs.interpreters import PLAIN_OUTPUT, debug_argv

__all__ = ["DebugSession", "Exchange"]

_GRACE_S = 5.0
_START_TIMEOUT_S = 60.0


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
        breakpoints: the host's table of breakpoints.
    """

    def __init__(self, workspace: Workspace, breakpoints: Sequence[dict[str, Any]]) -> None:
        sandbox = workspace.sandbox
        argv = debug_argv(sandbox, workspace.debug_entrypoint)
        self._session: Session = sandbox.open_session(argv, env=PLAIN_OUTPUT, warm=True)
        self.ended = False
        self._clean_snapshot: str | None = None
        self.start = self.request("set_breakpoints", _START_TIMEOUT_S, breakpoints=list(breakpoints))
        if self.start.answer is None:
            self.close()
            said = self.start.output.strip()[-500:] or "it took too long"
            raise ToolFailure("no_debugger", f"the debugger did not start: {said}")

    def request(self, op: str, timeout: float, **fields: Any) -> Exchange:
        """Sends a request and waits for its answer; after `timeout` seconds the program is interrupted."""
        self._clean_snapshot = None
        exchange = Exchange(None)
        if not self._take(exchange, self._session.request({"op": op, **fields}, timeout)):
            self._interrupt(exchange)
        return exchange

    def save_state(self, name: str) -> str | None:
        """Saves the paused program as it is now, for `restore_state`, beyond its end.

        Returns the name of what was saved: an earlier one if nothing was asked of the program since. None if it cannot
        be saved.
        """
        if self._clean_snapshot is None:
            exchange = self.request("commands", _GRACE_S, lines=[f"__hold__ {name}"])
            self._clean_snapshot = name if self._succeeded(exchange) else None
        return self._clean_snapshot

    def restore_state(self, name: str, breakpoints: Sequence[dict[str, Any]]) -> bool:
        """Makes the program what it was at `save_state`, with these breakpoints; false if that is gone."""
        table = {"breakpoints": list(breakpoints)}
        if self._clean_snapshot == name:
            exchange = self.request("set_breakpoints", _GRACE_S, **table)
        else:
            exchange = self.request("commands", _GRACE_S, lines=[f"restore {name}"], **table)
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

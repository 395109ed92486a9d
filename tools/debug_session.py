"""One debugged program: starts the debugger in the sandbox and exchanges requests with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gumshoe.errors import ToolFailure
from gumshoe.protocols import Sandbox, Session, Workspace
from gumshoe.records import SessionReply
from gumshoe.tools.debug_answers import read_answer, read_breakpoints
from gumshoe.tools.interpreters import our_program, python_words

__all__ = ["DebugSession", "Exchange", "debug_argv"]

_GRACE_S = 5.0
_START_TIMEOUT_S = 60.0
_ENVIRONMENT = {"TERM": "dumb", "NO_COLOR": "1", "PYTHONUNBUFFERED": "1"}


@dataclass
class Exchange:
    """What came of one request. `answer` is None when the program ended or was killed before it could answer."""

    answer: dict[str, Any] | None
    output: str = ""
    timed_out: bool = False
    killed: bool = False
    exit_code: int | None = None
    breakpoints: list[dict[str, Any]] | None = None
    """The table as it was told before the program went on."""


class DebugSession:
    """A running debugger. It ends with the program; a new session begins anew.

    Args:
        workspace: says what to debug.
        breakpoints: the host's table of breakpoints.
    """

    def __init__(self, workspace: Workspace, breakpoints: Sequence[dict[str, Any]]) -> None:
        sandbox = workspace.sandbox
        argv = debug_argv(sandbox, workspace.debug_entrypoint)
        self._session: Session = sandbox.open_session(argv, env=_ENVIRONMENT, warm=True)
        self.ended = False
        self._unmoved_since: str | None = None
        self.warm, self.cold = self._session.warm, self._session.cold
        self.start = self.request("set_breakpoints", _START_TIMEOUT_S, breakpoints=list(breakpoints))
        if self.start.answer is None:
            self.close()
            said = self.start.output.strip()[-500:] or "it took too long"
            raise ToolFailure("no_debugger", f"the debugger did not start: {said}")

    def request(self, op: str, timeout: float, **fields: Any) -> Exchange:
        """Sends a request and waits for its answer; after `timeout` seconds the program is interrupted."""
        self._unmoved_since = None
        exchange = Exchange(None)
        if not self._take(exchange, self._session.request({"op": op, **fields}, timeout)):
            self._interrupt(exchange)
        return exchange

    def hold(self, name: str) -> str | None:
        """Keeps the paused program as it is now, for `go_back`, beyond its end.

        Returns the name of what is kept: an earlier one if nothing was asked of the program since. None where it cannot
        be kept.
        """
        if self._unmoved_since is None and self._did(self.request("commands", _GRACE_S, lines=[f"__hold__ {name}"])):
            self._unmoved_since = name
        return self._unmoved_since

    def go_back(self, name: str, breakpoints: Sequence[dict[str, Any]]) -> bool:
        """Makes the program what it was at `hold`, with these breakpoints; false where that is gone."""
        table = {"breakpoints": list(breakpoints)}
        if self._unmoved_since == name:
            exchange = self.request("set_breakpoints", _GRACE_S, **table)
        else:
            exchange = self.request("commands", _GRACE_S, lines=[f"restore {name}"], **table)
        back = self._did(exchange)
        self.ended = not back
        self._unmoved_since = name if back else None
        return back

    @staticmethod
    def _did(exchange: Exchange) -> bool:
        answer = exchange.answer or {"state": "exited", "results": []}
        return answer["state"] == "stopped" and not any(result.get("failed") for result in answer["results"])

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
        for announced in reply.interim:
            exchange.breakpoints = read_breakpoints(announced) or exchange.breakpoints
        if reply.timed_out:
            return False
        if reply.message is not None and type(reply.message.get("gone")) is int:
            reply = reply.model_copy(update={"message": None, "exit_code": reply.message["gone"]})
        answer = exchange.answer = None if reply.message is None else read_answer(reply.message)
        exchange.exit_code = reply.exit_code if answer is None else answer["exit_code"]
        self.ended = answer is None or answer["state"] == "exited"
        if answer is None and reply.message is not None:
            exchange.killed = True
            self.close()
        return True

    def close(self) -> None:
        """Kills the program. Idempotent."""
        self.ended = True
        self._session.close()


def debug_argv(sandbox: Sandbox, entrypoint: Sequence[str], program: str = "debugger.main") -> list[str]:
    """The command that runs `entrypoint` under a program of `env/inside`, the debugger unless another is named.

    `python` with its options becomes that interpreter running our program; any other entrypoint is left to our program
    to find, and must be a Python program.
    """
    words = python_words(entrypoint)
    ours = our_program(sandbox.support, program)
    return [*(entrypoint[:words] or [sandbox.python]), *ours, "--", *entrypoint[words:]]

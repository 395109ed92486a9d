"""One debugged program: starts the debugger in the sandbox and exchanges requests with it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gumshoe.errors import ToolFailure
from gumshoe.protocols import Sandbox, Session, SessionReply, Workspace
from gumshoe.tools.debug_answers import read_answer, read_breakpoints

__all__ = ["DebugSession", "Exchange", "debug_argv"]

_GRACE_S = 5.0
_START_TIMEOUT_S = 60.0
_PYTHON = re.compile(r"(.*/)?(python|pypy)[\d.]*$")
_WITH_VALUE = {"-W", "-X"}
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
        workspace: whose task says what to debug.
        breakpoints: the host's table of breakpoints.
    """

    def __init__(self, workspace: Workspace, breakpoints: Sequence[dict[str, Any]]) -> None:
        sandbox = workspace.sandbox
        argv = debug_argv(sandbox, workspace.task.debug_entrypoint or workspace.task.entrypoint)
        self._session: Session = sandbox.open_session(argv, env=_ENVIRONMENT)
        self.ended = False
        self.start = self.request("set_breakpoints", _START_TIMEOUT_S, breakpoints=list(breakpoints))
        if self.start.answer is None:
            self.close()
            said = self.start.output.strip()[-500:] or "it took too long"
            raise ToolFailure("no_debugger", f"the debugger did not start: {said}")

    def request(self, op: str, timeout: float, **fields: Any) -> Exchange:
        """Sends a request and waits for its answer; after `timeout` seconds the program is interrupted."""
        exchange = Exchange(None)
        if not self._take(exchange, self._session.request({"op": op, **fields}, timeout)):
            self._interrupt(exchange)
        return exchange

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


def debug_argv(sandbox: Sandbox, entrypoint: Sequence[str], script: str = "gumshoe_debugger.py") -> list[str]:
    """The command that runs `entrypoint` under an injected script, the debugger unless another is named.

    `python` with its options becomes that interpreter running the script; any other program is left to the script to
    find, and must be a Python program.
    """
    debugger = f"{sandbox.support}/{script}"
    if not _PYTHON.match(entrypoint[0]):
        return [sandbox.python, debugger, "--", *entrypoint]
    options = 1
    while options < len(entrypoint) and entrypoint[options].startswith("-") and entrypoint[options] not in ("-m", "-c"):
        options += 2 if entrypoint[options] in _WITH_VALUE else 1
    return [*entrypoint[:options], debugger, "--", *entrypoint[options:]]

"""One debugged program: starts the debugger in the sandbox and exchanges requests with it."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gumshoe.errors import ToolFailure
from gumshoe.protocols import Sandbox, Session, SessionReply, Workspace

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
        self._count = 0
        self._session: Session = sandbox.open_session(argv, env=_ENVIRONMENT)
        self.ended = False
        self.start = self.request("set_breakpoints", _START_TIMEOUT_S, breakpoints=list(breakpoints))
        if self.start.answer is None:
            self.close()
            said = self.start.output.strip()[-500:] or "it took too long"
            raise ToolFailure("no_debugger", f"the debugger did not start: {said}")

    def request(self, op: str, timeout: float, **fields: Any) -> Exchange:
        """Sends a request and waits for its answer; after `timeout` seconds the program is interrupted."""
        self._count += 1
        deadline = time.monotonic() + timeout
        exchange = Exchange(None)
        reply = self._session.request({"id": self._count, "op": op, **fields}, timeout)
        if not self._take(exchange, reply, deadline):
            self._interrupt(exchange)
        return exchange

    def _interrupt(self, exchange: Exchange) -> None:
        """Stops a program that runs too long where it is; one that does not stop is killed."""
        exchange.timed_out = True
        self._session.interrupt()
        deadline = time.monotonic() + _GRACE_S
        if not self._take(exchange, self._session.wait_message(_GRACE_S), deadline):
            exchange.killed = True
            self.close()

    def _take(self, exchange: Exchange, reply: SessionReply, deadline: float) -> bool:
        """Takes in what comes until the answer or the end of the program; false when the time is up before.

        Answers to earlier requests, given up on since, are passed over; breakpoints that were changed are told before
        the answer.
        """
        while True:
            exchange.output += reply.output
            message = reply.message
            if message is None:
                break
            if message.get("id") == self._count and "interim" not in message:
                exchange.answer = message
                self.ended = message.get("state") == "exited"
                break
            if message.get("id") == self._count:
                exchange.breakpoints = message["breakpoints"]  # type: ignore[assignment]
            reply = self._session.wait_message(max(0.0, deadline - time.monotonic()))
        if reply.timed_out:
            return False
        exchange.exit_code = reply.exit_code if message is None else message.get("exit_code")  # type: ignore[assignment]
        self.ended = self.ended or message is None
        return True

    def close(self) -> None:
        """Kills the program. Idempotent."""
        self.ended = True
        self._session.close()


def debug_argv(sandbox: Sandbox, entrypoint: Sequence[str]) -> list[str]:
    """The command that debugs what `entrypoint` runs.

    `python` with its options becomes that interpreter running our debugger; any other program is left to the debugger
    to find, and must be a Python script.
    """
    debugger = f"{sandbox.support}/gumshoe_debugger.py"
    if not _PYTHON.match(entrypoint[0]):
        return [sandbox.python, debugger, "--", *entrypoint]
    options = 1
    while options < len(entrypoint) and entrypoint[options].startswith("-") and entrypoint[options] not in ("-m", "-c"):
        options += 2 if entrypoint[options] in _WITH_VALUE else 1
    return [*entrypoint[:options], debugger, "--", *entrypoint[options:]]

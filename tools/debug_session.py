"""One debugged program: starts the debugger in the sandbox and exchanges requests with it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
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
    notes: list[str] = field(default_factory=list[str])


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
        reply = self._session.request({"id": self._count, "op": op, **fields}, timeout)
        exchange = Exchange(None)
        self._take(exchange, reply)
        if reply.timed_out:
            self._interrupt(exchange)
        return exchange

    def _interrupt(self, exchange: Exchange) -> None:
        """Stops a program that runs too long where it is; one that does not stop is killed."""
        exchange.timed_out = True
        self._session.interrupt()
        reply = self._session.wait_message(_GRACE_S)
        self._take(exchange, reply)
        if reply.timed_out:
            exchange.killed = True
            self.close()

    def _take(self, exchange: Exchange, reply: SessionReply) -> None:
        """Takes in a reply; an answer to an earlier request, given up on since, is passed over."""
        exchange.output += reply.output
        while reply.message is not None and reply.message.get("id") != self._count:
            reply = self._session.wait_message(_GRACE_S)
            exchange.output += reply.output
        if reply.message is not None:
            exchange.answer = reply.message
            exchange.exit_code = reply.message.get("exit_code")  # type: ignore[assignment]
            self.ended = reply.message.get("state") == "exited"
        elif reply.exit_code is not None:
            exchange.exit_code = reply.exit_code
            self.ended = True

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

"""A person at the terminal who types what a model would."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from typing import IO

from gumshoe.collect.episode.conversation import count_turns
from gumshoe.records import Completion, Message, ToolSchema
from gumshoe.tools.calls.command_line import parse_command

__all__ = ["HumanPolicy", "read_line"]

HELP = """\
one call a line:  TOOL argument=value ...      such as  view path=cart.py start=3, view cart.py 3
a decision first: [seek 0.8] why               kept for the next call
tools             lists them                   quit  stops here (can be resumed)"""


class HumanPolicy:
    """Prints what is new in the conversation and reads the next call.

    Args:
        stdin: where lines are read; by default, the process's own.
        stdout: where the conversation is shown.
    """

    kind = "human"
    model = ""
    trusted = True

    def __init__(self, stdin: IO[str] | None = None, stdout: IO[str] | None = None) -> None:
        self._stdin = stdin or sys.stdin
        self._stdout = stdout or sys.stdout
        self._shown = 0

    def complete(self, messages: Sequence[Message], tools: Sequence[ToolSchema]) -> Completion:
        """Asks until a call is typed. Raises KeyboardInterrupt, as Ctrl-C does, on `quit` or at the end of input."""
        if self._shown == 0:
            self._say(HELP)
        for message in messages[self._shown :]:
            if message.role != "assistant":
                self._say(f"--- {message.role}\n{message.content}")
        self._shown = len(messages)
        turn = count_turns(messages)
        text = ""
        while True:
            line = self._read()
            if line.startswith("["):
                text = line
            elif line == "tools":
                self._say("\n".join(f"{tool.name}: {tool.description}" for tool in tools))
            elif line:
                call = parse_command(line, f"call-{turn}", tools)
                return Completion(text=text, tool_calls=(call,), finish_reason="tool_calls")

    def _read(self) -> str:
        self._stdout.write("> ")
        self._stdout.flush()
        line = read_line(self._stdin)
        if not line or line.strip() == "quit":
            raise KeyboardInterrupt
        return line.strip()

    def _say(self, text: str) -> None:
        self._stdout.write(f"{text}\n")
        self._stdout.flush()


def read_line(source: IO[str]) -> str:
    """The next line with its end; empty at the end of the input.

    A thread that is left behind in it when the run is stopped holds no buffer, for which Python would wait at its exit.
    """
    if not isinstance(source, io.TextIOWrapper):
        return source.readline()
    line = bytearray()
    while not line.endswith(b"\n") and (byte := os.read(source.fileno(), 1)):
        line += byte
    return line.decode(source.encoding, "replace")

"""A person at the terminal, who types what a model would, or looks at each turn before it is acted on (`--step`)."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import IO

from gumshoe.collect.episode.conversation import count_turns
from gumshoe.protocols import Policy, close_policy
from gumshoe.records import Completion, Message, ToolSchema
from gumshoe.tools.calls.command_line import parse_command

__all__ = ["HumanPolicy", "StepPolicy", "read_line"]

HELP = """\
one call a line:  TOOL argument=value ...      such as  view path=cart.py start=3, view cart.py 3
a decision first: [seek 0.8] why               kept for the next call
tools             lists them                   quit  stops here (can be resumed)"""
CHOICES = "enter: go on   e TOOL argument=value ...: call this instead   t: take over   q: stop here (can be resumed)"


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
        self._terminal = _Terminal(stdin or sys.stdin, stdout or sys.stdout)
        self._is_new = True

    def complete(self, messages: Sequence[Message], tools: Sequence[ToolSchema]) -> Completion:
        """Asks until a call is typed. Raises KeyboardInterrupt, as Ctrl-C does, on `quit` or at the end of input."""
        if self._is_new:
            self._terminal.say(HELP)
            self._is_new = False
        self._terminal.show(messages)
        turn = count_turns(messages)
        text = ""
        while True:
            line = self._terminal.ask("> ")
            word = line.strip()
            if not line or word == "quit":
                raise KeyboardInterrupt
            if word.startswith("["):
                text = word
            elif word == "tools":
                self._terminal.say("\n".join(f"{tool.name}: {tool.description}" for tool in tools))
            elif word:
                call = parse_command(word, f"call-{turn}", tools)
                return Completion(text=text, tool_calls=(call,), finish_reason="tool_calls")


class StepPolicy:
    """Shows what came back and what another policy wants to do next, and asks.

    Its `kind` becomes `KIND+human` once a person has changed anything.

    Args:
        inner: who decides otherwise.
        stop: called when the person wants to stop; it raises.
        stdin: where answers are read.
        stdout: where turns are shown.
    """

    def __init__(self, inner: Policy, stop: Callable[[], None], stdin: IO[str], stdout: IO[str]) -> None:
        self.kind = inner.kind
        self.model = inner.model
        self.trusted = inner.trusted
        self._inner = inner
        self._stop = stop
        self._stdin, self._stdout = stdin, stdout
        self._terminal = _Terminal(stdin, stdout)
        self._person: HumanPolicy | None = None

    def complete(self, messages: Sequence[Message], tools: Sequence[ToolSchema]) -> Completion:
        """The other policy's turn, or what the person makes of it. Raises PolicyError, and what `stop` raises."""
        if self._person is not None:
            return self._person.complete(messages, tools)
        self._terminal.show(messages)
        completion = self._inner.complete(messages, tools)
        calls = "\n".join(f"    {call.name} {json.dumps(call.arguments)}" for call in completion.tool_calls)
        self._terminal.say(f"--- {self.kind} wants\n{completion.text}\n{calls}\n{CHOICES}")
        return self._ask(completion, messages, tools)

    def close(self) -> None:
        """Closes the other policy."""
        close_policy(self._inner)

    def _ask(self, completion: Completion, messages: Sequence[Message], tools: Sequence[ToolSchema]) -> Completion:
        while True:
            answer = self._terminal.ask("step> ")
            word = answer.strip()
            if answer and not word:
                return completion
            if not answer or word == "q":
                self._stop()
            elif word == "t":
                self.kind = f"{self._inner.kind}+human"
                self._person = HumanPolicy(self._stdin, self._stdout)
                return self._person.complete(messages, tools)
            elif word.startswith("e ") and word[2:].strip():
                self.kind = f"{self._inner.kind}+human"
                ident = completion.tool_calls[0].id if completion.tool_calls else f"call-{len(messages)}"
                return completion.model_copy(update={"tool_calls": (parse_command(word[2:].strip(), ident, tools),)})
            else:
                self._terminal.say(CHOICES)


class _Terminal:
    """Where a person reads the conversation and types."""

    def __init__(self, stdin: IO[str], stdout: IO[str]) -> None:
        self._stdin = stdin
        self._stdout = stdout
        self._shown = 0

    def show(self, messages: Sequence[Message]) -> None:
        """Shows the messages of a conversation that are new, but for the assistant's own."""
        for message in messages[self._shown :]:
            if message.role != "assistant":
                self.say(f"--- {message.role}\n{message.content}")
        self._shown = len(messages)

    def say(self, text: str) -> None:
        """Prints a text on lines of its own."""
        self._stdout.write(f"{text}\n")
        self._stdout.flush()

    def ask(self, prompt: str) -> str:
        """The next line with its end; empty at the end of the input."""
        self._stdout.write(prompt)
        self._stdout.flush()
        return read_line(self._stdin)


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

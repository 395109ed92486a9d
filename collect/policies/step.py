"""`--step`: a person looks at each turn before it is acted on."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import IO

from gumshoe.collect.policies.human import HumanPolicy, read_line
from gumshoe.collect.policies.registry import close_policy
from gumshoe.protocols import Policy
from gumshoe.records import Completion, Message, ToolSchema
from gumshoe.tools.calls.command_line import parse_command

__all__ = ["StepPolicy"]

CHOICES = "enter: go on   e TOOL argument=value ...: call this instead   t: take over   q: stop here (can be resumed)"


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
        self._stdin = stdin
        self._stdout = stdout
        self._person: HumanPolicy | None = None
        self._shown = 0

    def complete(self, messages: Sequence[Message], tools: Sequence[ToolSchema]) -> Completion:
        """The other policy's turn, or what the person makes of it. Raises PolicyError, and what `stop` raises."""
        if self._person is not None:
            return self._person.complete(messages, tools)
        for message in messages[self._shown :]:
            if message.role != "assistant":
                self._say(f"--- {message.role}\n{message.content}")
        self._shown = len(messages)
        completion = self._inner.complete(messages, tools)
        calls = "\n".join(f"    {call.name} {json.dumps(call.arguments)}" for call in completion.tool_calls)
        self._say(f"--- {self.kind} wants\n{completion.text}\n{calls}\n{CHOICES}")
        return self._ask(completion, messages, tools)

    def close(self) -> None:
        """Closes the other policy."""
        close_policy(self._inner)

    def _ask(self, completion: Completion, messages: Sequence[Message], tools: Sequence[ToolSchema]) -> Completion:
        while True:
            self._stdout.write("step> ")
            self._stdout.flush()
            answer = read_line(self._stdin)
            word = answer.strip()
            if answer and not word:
                return completion
            if not answer or word == "q":
                self._stop()
            elif word == "t":
                self._changed()
                self._person = HumanPolicy(self._stdin, self._stdout)
                return self._person.complete(messages, tools)
            elif word.startswith("e ") and word[2:].strip():
                self._changed()
                ident = completion.tool_calls[0].id if completion.tool_calls else f"call-{len(messages)}"
                return completion.model_copy(update={"tool_calls": (parse_command(word[2:].strip(), ident, tools),)})
            else:
                self._say(CHOICES)

    def _changed(self) -> None:
        self.kind = f"{self._inner.kind}+human"

    def _say(self, text: str) -> None:
        self._stdout.write(f"{text}\n")
        self._stdout.flush()

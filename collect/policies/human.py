"""A person at the terminal, who types what a model would, or looks at each turn before it is acted on (`--step`).

`parse_command` reads a call as people type it: `view cart.py 3 9`, `view path=cart.py start=3`, `pdb b cart.py:3`.
"""

from __future__ import annotations

import io
import json
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any

from gumshoe.collect.episode.conversation import count_turns
from gumshoe.config import parse_yaml
from gumshoe.protocols import Policy, close_policy
from gumshoe.records import Completion, Message, ToolCall, ToolSchema

__all__ = ["HumanPolicy", "StepPolicy", "line_parameter", "parse_command", "read_line"]

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


Properties = Mapping[str, Mapping[str, Any]]


def parse_command(line: str, call_id: str, tools: Sequence[ToolSchema] = ()) -> ToolCall:
    """`tool argument=value ...` as a call. What cannot be read becomes a parse error.

    For the tools whose schemas are given, arguments may also stand without their names, in the order of the schema,
    a tool that takes one text gets the rest of the line as it is, and one that needs a single list or mapping may get
    it without quotes: `whatif [{path: a.py, line: 3, do: skip}]`. A text parameter is given the text as it was
    typed; all other values are read as YAML. A backslash means itself; what holds spaces goes in quotes. The
    arguments of a tool that is not among `tools` are not read.
    """
    name, _, rest = line.strip().partition(" ")
    schema = next((tool for tool in tools if tool.name == name), None)
    if schema is None:
        return ToolCall(id=call_id, name=name) if tools else _named_only(line, call_id)
    only = line_parameter(schema)
    if only is not None and not rest.lstrip().startswith(f"{only}="):
        return ToolCall(id=call_id, name=name, arguments={only: rest.strip()} if rest.strip() else {})
    properties: Any = schema.parameters.get("properties") or {}
    needed: Any = schema.parameters.get("required") or list(properties)
    if rest.lstrip().startswith(("[", "{")) and len(needed) == 1:
        return ToolCall(id=call_id, name=name, arguments={needed[0]: _value(rest.strip())})
    return _by_schema(name, rest, call_id, properties)


def line_parameter(schema: ToolSchema) -> str | None:
    """The one text parameter of a tool that has no other and needs it; None for the other tools."""
    properties: Any = schema.parameters.get("properties") or {}
    names = list(properties)
    if len(names) != 1 or properties[names[0]].get("type") != "string":
        return None
    required: Any = schema.parameters.get("required") or []
    return names[0] if names[0] in required else None


def _by_schema(name: str, rest: str, call_id: str, properties: Properties) -> ToolCall:
    arguments: dict[str, Any] = {}
    free: list[str] = []
    for word in _words(rest):
        key, equals, value = word.partition("=")
        if equals and key in properties:
            arguments[key] = _typed(value, properties[key])
        else:
            free.append(word)
    open_names = [key for key in properties if key not in arguments]
    for word in free[len(open_names) :]:
        key, equals, value = word.partition("=")
        if not equals or not key.isidentifier():
            takes = ", ".join(properties) or "no arguments"
            why = f"{word!r} is one argument too many: {name} takes {takes}"
            return ToolCall(id=call_id, name=name, parse_error=why, raw=f"{name} {rest}")
        arguments[key] = _value(value)  # The tool itself says that it has no such argument.
    arguments.update({key: _typed(word, properties[key]) for key, word in zip(open_names, free, strict=False)})
    return ToolCall(id=call_id, name=name, arguments=arguments)


def _named_only(line: str, call_id: str) -> ToolCall:
    name, *words = _words(line) or [""]
    arguments: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key.isidentifier():
            why = f"{word!r} is not of the form argument=value"
            return ToolCall(id=call_id, name=name, parse_error=why, raw=line)
        arguments[key] = _value(value)
    return ToolCall(id=call_id, name=name, arguments=arguments)


def _words(line: str) -> list[str]:
    """The words of a line, quotes taken off; if a quote is left open, they are words as they stand."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=False)
    lexer.whitespace_split = True
    lexer.commenters = lexer.escape = ""
    try:
        return list(lexer)
    except ValueError:
        return line.split()


def _typed(text: str, schema: Mapping[str, Any]) -> Any:
    return text if schema.get("type") == "string" else _value(text)


def _value(text: str) -> Any:
    """Numbers, booleans, null, lists and mappings as YAML has them; all else is text."""
    try:
        value = parse_yaml(text)
    except ValueError:
        return text
    return value if isinstance(value, (int, float, bool, list, dict)) or (value is None and text == "null") else text

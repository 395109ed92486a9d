"""A person at the terminal, who types what a model would, or looks at each turn before it is acted on (`--step`).

`parse_command` reads a call as people type it: `view cart.py 3 9`, `view path=cart.py start=3`, `pdb b cart.py:3`.
"""

from __future__ import annotations

import io
import json
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import IO, Any

from gumshoe.collect.episode.conversation import count_turns
from gumshoe.config import parse_yaml
from gumshoe.protocols import Policy, close_policy
from gumshoe.records import Completion, Message, ToolCall, ToolSchema

HELP = """\
one call a line:  TOOL argument=value ...      such as  view path=cart.py start=3, view cart.py 3
a decision first: [seek 0.8] why               kept for the next call
tools             lists them                   quit  stops here (can be resumed)"""
STOP = ("q", "quit", "exit")
CHOICES = "enter: go on   e TOOL argument=value ...: call this instead   t: take over   q: stop here (can be resumed)"


class HumanPolicy:
    """Prints what is new in the conversation and reads the next call; or, of another policy, what to do with its turn.

    `kind` is `human`, or that of the other policy, and `KIND+human` once the person has changed anything.

    Args:
        inner: who decides unless the person wants otherwise; None: the person types every call.
        stdin: where lines are read; by default, the process's own.
        stdout: where the conversation is shown.
    """

    def __init__(
        self, inner: Policy | None = None, stdin: IO[str] | None = None, stdout: IO[str] | None = None
    ) -> None:
        self.kind = "human" if inner is None else inner.kind
        self.model = "" if inner is None else inner.model
        self.trusted = inner is None or inner.trusted
        self._inner = inner
        self._types = False
        self._shown = 0
        self._stdin = stdin or sys.stdin
        self._stdout = stdout or sys.stdout

    def complete(self, messages: Sequence[Message], tools: Sequence[ToolSchema]) -> Completion:
        """The turn. Raises KeyboardInterrupt, as Ctrl-C does, if the person wants to stop, and PolicyError."""
        for message in messages[self._shown :]:
            if message.role != "assistant":
                self._say(f"--- {message.role}\n{message.content}")
        self._shown = len(messages)
        if self._inner is None or self._types:
            return self._typed_turn(count_turns(messages), tools)
        completion = self._inner.complete(messages, tools)
        calls = "\n".join(f"    {call.name} {json.dumps(call.arguments)}" for call in completion.tool_calls)
        self._say(f"--- {self.kind} wants\n{completion.text}\n{calls}\n{CHOICES}")
        return self._chosen_turn(completion, count_turns(messages), tools)

    def close(self) -> None:
        """Closes the other policy."""
        if self._inner is not None:
            close_policy(self._inner)

    def _typed_turn(self, turn: int, tools: Sequence[ToolSchema]) -> Completion:
        """Asks until a call is typed."""
        if not self._types:
            self._types = True
            self._say(HELP)
        text = ""
        while True:
            word = self._ask("> ")
            if word.startswith("["):
                text = word
            elif word == "help":
                self._say(HELP)
            elif word == "tools":
                self._say("\n".join(f"{tool.name}: {tool.description}" for tool in tools))
            elif word:
                call = parse_command(word, f"call-{turn}", tools)
                return Completion(text=text, tool_calls=(call,), finish_reason="tool_calls")

    def _chosen_turn(self, completion: Completion, turn: int, tools: Sequence[ToolSchema]) -> Completion:
        """Asks what to do with the other policy's turn."""
        while word := self._ask("step> "):
            if word == "t":
                self.kind = f"{self.kind.removesuffix('+human')}+human"
                return self._typed_turn(turn, tools)
            choice, _, command = word.partition(" ")
            if choice == "e" and command.strip():
                self.kind = f"{self.kind.removesuffix('+human')}+human"
                ident = completion.tool_calls[0].id if completion.tool_calls else f"call-{turn}"
                return completion.model_copy(update={"tool_calls": (parse_command(command.strip(), ident, tools),)})
            self._say(CHOICES)
        return completion

    def _say(self, text: str) -> None:
        self._stdout.write(f"{text}\n")
        self._stdout.flush()

    def _ask(self, prompt: str) -> str:
        """What is typed. Raises KeyboardInterrupt for a word that stops, and at the end of the input."""
        self._stdout.write(prompt)
        self._stdout.flush()
        line = read_line(self._stdin)
        if not line or line.strip() in STOP:
            raise KeyboardInterrupt
        return line.strip()


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
        return ToolCall(id=call_id, name=name) if tools else _by_schema(name, rest, call_id, None)
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


def _by_schema(name: str, rest: str, call_id: str, schema: Properties | None) -> ToolCall:
    """The call with arguments by their names and, where the schema is known, by their order."""
    properties = schema or {}
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
            why = f"{word!r} is one argument too many: {name} takes {', '.join(properties) or 'no arguments'}"
            if schema is None:
                why = f"{word!r} is not of the form argument=value"
            return ToolCall(id=call_id, name=name, parse_error=why, raw=f"{name} {rest}")
        arguments[key] = _value(value)  # The tool itself says that it has no such argument.
    arguments.update({key: _typed(word, properties[key]) for key, word in zip(open_names, free, strict=False)})
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

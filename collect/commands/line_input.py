"""The lines that a person types, and what can come next on one: commands, tools, their arguments, paths."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any, TypeAlias

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import InMemoryHistory

from gumshoe.collect.policies.human import line_parameter
from gumshoe.records import ToolSchema

END_OF_TEXT = "."


@dataclass(frozen=True)
class Suggestion:
    """A word that can stand in place of the last `replaces` characters, and what it is."""

    word: str
    replaces: int
    meaning: str = ""


Suggest = Callable[[str], Iterable[Suggestion]]


class PipeInput:
    """Reads lines as they come; several lines end with a line that holds a single period. None is the end of all."""

    def __init__(self, source: IO[str]) -> None:
        self._source = source

    def line(self, prompt: str, prefix: str = "") -> str | None:
        """The next line."""
        del prompt, prefix
        line = self._source.readline()
        return line.rstrip("\n") if line else None

    def text(self, prompt: str, initial: str) -> str | None:
        """The lines up to the period; `initial` is not used."""
        del prompt, initial
        lines: list[str] = []
        for line in self._source:
            if line.rstrip("\n") == END_OF_TEXT:
                return "\n".join(lines)
            lines.append(line.rstrip("\n"))
        return None


class TerminalInput:
    """A prompt with completion on the Tab key, by `suggest`, and the history of this session on the arrow keys."""

    def __init__(self, suggest: Suggest) -> None:
        self._suggest = suggest
        self._session: PromptSession[str] = PromptSession(history=InMemoryHistory(), complete_while_typing=False)
        self._editor: PromptSession[str] = PromptSession(multiline=True, key_bindings=_finish_with_control_d())

    def line(self, prompt: str, prefix: str = "") -> str | None:
        """One line; `prefix` is what will stand before it, for completion. Raises KeyboardInterrupt."""
        try:
            return self._session.prompt(prompt, completer=_Completer(self._suggest, prefix))
        except EOFError:
            return None

    def text(self, prompt: str, initial: str) -> str | None:
        """Several lines, edited in place; Ctrl-D accepts them. Raises KeyboardInterrupt."""
        try:
            return self._editor.prompt(prompt, default=initial, prompt_continuation=" " * len(prompt))
        except EOFError:
            return None


LineInput: TypeAlias = PipeInput | TerminalInput
"""Asks a person for lines."""


class _Completer(Completer):
    def __init__(self, suggest: Suggest, prefix: str) -> None:
        self._suggest = suggest
        self._prefix = prefix

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        del complete_event
        for each in self._suggest(self._prefix + document.text_before_cursor):
            yield Completion(each.word, start_position=-each.replaces, display_meta=each.meaning)


def _finish_with_control_d() -> Any:
    from prompt_toolkit.key_binding import KeyBindings

    bindings = KeyBindings()

    @bindings.add("c-d")
    def _(event: Any) -> None:
        event.current_buffer.validate_and_handle()

    return bindings


DEBUGGER_COMMANDS = {
    "b": "breakpoint at FILE:LINE or FUNCTION[, CONDITION]",
    "tbreak": "breakpoint that is gone once it was hit",
    "log": "note a value each time FILE:LINE, EXPRESSION is reached",
    "catch": "stop where an exception of TYPE is raised",
    "watch": "stop when the value of an expression changes",
    "unwatch": "delete what is watched",
    "cl": "delete breakpoints",
    "enable": "use breakpoints again: NUMBERS",
    "disable": "leave breakpoints unused: NUMBERS",
    "condition": "NUMBER EXPRESSION",
    "ignore": "NUMBER COUNT",
    "c": "go on to the next stop",
    "n": "next line, over calls",
    "s": "next line, into calls",
    "r": "go on until this function returns",
    "until": "go on to a later line",
    "jump": "go on at another line of this function",
    "p": "value of an expression",
    "pp": "value, in several lines",
    "whatis": "type of an expression",
    "source": "code of a function or class",
    "retval": "what this function returns",
    "exception": "the exception at hand",
    "locals": "the variables of this frame",
    "a": "the arguments of this function",
    "w": "the stack",
    "u": "the frame above",
    "d": "the frame below",
    "l": "the code around",
    "ll": "the whole function",
    "checkpoint": "keep this state under NAME",
    "restore": "go back to the state NAME",
    "restart": "begin again, breakpoints kept",
    "q": "end the program",
}
_TAKES_PLACE = {"b", "break", "tbreak", "log", "cl", "clear"}
_TAKES_PATH = {"path"}


def suggestions(
    line: str, tools: Sequence[ToolSchema], words: Mapping[str, str], paths: Callable[[], Sequence[str]]
) -> Iterator[Suggestion]:
    """What can stand at the end of `line`.

    Args:
        tools: the tools in use.
        words: the other words that a line can begin with, and what they do.
        paths: lists the files and folders (with a slash at the end), called only where a path can stand.
    """
    name, space, rest = line.lstrip().partition(" ")
    if not space:
        starts = {**{tool.name: tool.description for tool in tools}, **words}
        yield from _matching(name, starts)
        return
    tool = next((tool for tool in tools if tool.name == name), None)
    if tool is None:
        if name == "help":
            yield from _matching(rest, {tool.name: tool.description for tool in tools})
    elif name == "pdb":
        yield from _of_debugger(rest, paths)
    elif line_parameter(tool) is not None:
        yield from _matching(re.split(r"[\s=<>|;&]", rest)[-1], dict.fromkeys(paths(), ""), "/")
    else:
        yield from _of_arguments(rest, tool, paths)


def _of_debugger(line: str, paths: Callable[[], Sequence[str]]) -> Iterator[Suggestion]:
    command, space, place = line.rpartition(";;")[2].lstrip().partition(" ")
    if not space:
        yield from _matching(command, DEBUGGER_COMMANDS)
    elif command in _TAKES_PLACE:
        files = [path for path in paths() if path.endswith((".py", "/"))]
        yield from _matching(place.lstrip(), {path if path.endswith("/") else f"{path}:": "" for path in files}, "/")


def _of_arguments(rest: str, tool: ToolSchema, paths: Callable[[], Sequence[str]]) -> Iterator[Suggestion]:
    properties: Any = tool.parameters.get("properties") or {}
    *before, word = rest.split(" ")
    key, equals, value = word.partition("=")
    given = {part.partition("=")[0] for part in before if "=" in part}
    named = [name for name in properties if name not in given]
    free = len([part for part in before if part and "=" not in part])
    if equals and key in properties:
        if key in _TAKES_PATH:
            yield from _matching(value, dict.fromkeys(paths(), ""), "/")
        return
    if named[free : free + 1] and named[free] in _TAKES_PATH:
        yield from _matching(word, dict.fromkeys(paths(), ""), "/")
    left = {f"{name}=": str(properties[name].get("description", "")) for name in named[free:]}
    yield from _matching(word, left)


def _matching(start: str, choices: Mapping[str, str], separator: str = "") -> Iterator[Suggestion]:
    """The choices that begin with what is there; for paths, only those that are at most one folder away."""
    for choice, meaning in choices.items():
        if separator and choice.rstrip(separator).count(separator) > start.count(separator):
            continue
        if choice.startswith(start):
            yield Suggestion(choice, len(start), meaning)

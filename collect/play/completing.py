"""What can come next on a line: commands, tools, their arguments, paths, the debugger's commands."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gumshoe.records import ToolSchema
from gumshoe.tools.typed_calls import line_parameter

__all__ = ["DEBUGGER_COMMANDS", "Suggestion", "suggestions"]

DEBUGGER_COMMANDS = {
    "b": "breakpoint at FILE:LINE or FUNCTION[, CONDITION]",
    "tbreak": "breakpoint that is gone once it was hit",
    "cl": "delete breakpoints",
    "condition": "NUMBER EXPRESSION",
    "ignore": "NUMBER COUNT",
    "c": "go on to the next stop",
    "n": "next line, over calls",
    "s": "next line, into calls",
    "r": "go on until this function returns",
    "until": "go on to a later line",
    "p": "value of an expression",
    "pp": "value, in several lines",
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
_TAKES_PLACE = {"b", "break", "tbreak", "cl", "clear"}
_TAKES_PATH = {"path"}


@dataclass(frozen=True)
class Suggestion:
    """A word that can stand in place of the last `replaces` characters, and what it is."""

    word: str
    replaces: int
    meaning: str = ""


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

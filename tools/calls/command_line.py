"""Tool calls as people type them: `view cart.py 3 9`, `view path=cart.py start=3`, `pdb b cart.py:3`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from gumshoe.config import parse_yaml
from gumshoe.records import ToolCall, ToolSchema

__all__ = ["line_parameter", "parse_command"]

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
    """The words of a line, quotes taken off; where a quote is left open they are words as they stand."""
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

"""Tool calls as models write them: the provider's native form, and Hermes text.

    <tool_call>
    {"name": "view", "arguments": {"path": "cart.py"}}
    </tool_call>

Small models often leave the tags out, or write a Markdown fence instead: the object alone is then the call, if it
names a tool that was offered. Llama's models write `parameters` for `arguments`. Those of Qwen3-Coder and SWE-smith
write

    <function=view>
    <parameter=path>cart.py</parameter>
    </function>

with or without `<tool_call>` around it. Calls as GLM, Mistral, DeepSeek, Llama 4 and harmony write them are refused: it
takes a server that parses them.

JSON with missing brackets, commas or escapes is repaired in a block that was closed; one that was not may lack half of
what it should write. What cannot be read becomes a `ToolCall` with `parse_error`, which the environment answers with
how to call it right.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import json_repair

from gumshoe.records import ToolCall, ToolSchema
from gumshoe.text import FENCE, clean, clean_json

TAG = "<tool_call>"
_BLOCK = re.compile(r"<tool_call>\s*(?P<call>.*?)\s*(?:(?P<end></tool_call>)|(?=<tool_call>)|\Z)", re.DOTALL)
_FUNCTION = re.compile(
    r"^ {0,3}<function=(?P<name>[^>\s]*)>(?P<body>.*?)"
    r"(?:(?:^|(?<=>))[ \t]*(?P<end></function>)|(?=^ {0,3}<function=)|\Z)",
    re.DOTALL | re.MULTILINE,
)
_PARAMETER = re.compile(
    r"<parameter=(?P<name>[^>\s]+)>\n?(?P<value>.*?)\n?(?:</parameter>|(?=<parameter=)|\Z)", re.DOTALL
)
_FOREIGN = re.compile(
    r"^(?:\[TOOL_CALLS\]|<\|(?:start|channel)\|>.*to=functions\.|<\uff5ctool|<tools>\s*\[|\[(?P<name>\w+)\(.*\)\]$)"
    r"|^<tool_call>\w+\s*<arg_key>",
    re.MULTILINE,
)
"""How calls begin in formats that are not read."""
_NAME = re.compile(r'"name"\s*:\s*"([^"]*)"')
_OBJECT_START = re.compile(r"^ {0,3}(?:<\|python_tag\|>)?(?=\{)", re.MULTILINE)
_OPENING, _CLOSING = ("(", "[", "{", ",", "="), (")", "]", "}", ",", ";")
# What is nested deeper cannot be stored inside of a trajectory's own levels, and is no sensible argument.
MAX_DEPTH = 64
TOO_DEEP = f"nested in more than {MAX_DEPTH} levels"
_BEFORE = 40
"""Characters of a call that are shown before a mistake in it."""
_IN_STRING = re.compile(r"delimiter|escape|control character")
"""What the decoder says where a string has characters that end it, or that need an escape."""
_LINE_END = re.compile(r"[ \t\r]*(?:\n|\Z)")


def parse_native(call_id: str, name: str, arguments: Any) -> ToolCall:
    """A call in the provider's own form. `arguments` is JSON text; some servers send a JSON value, or nothing."""
    if arguments is not None and not isinstance(arguments, str):
        return _object_call(call_id, name, arguments, "")
    text = arguments or ""
    if not text.strip():
        return ToolCall(id=call_id, name=name)
    try:
        value = _loads(text)
    except ValueError as error:
        return _unreadable(call_id, name, text, f"the arguments are not valid JSON: {_what_is_wrong(error)}")
    if value is None:
        return ToolCall(id=call_id, name=name)
    if isinstance(value, str) and value.lstrip().startswith("{"):  # encoded twice
        return parse_native(call_id, name, value)
    return _object_call(call_id, name, value, text)


def split_text_calls(text: str, *, prefix: str, offered: Collection[str] = ()) -> tuple[str, tuple[ToolCall, ...]]:
    """The text without its calls, and the calls: its `<tool_call>` blocks, or else its one bare call.

    Args:
        text: what the model wrote; a last block may be left open, as when it ran into its length limit.
        prefix: start of the calls' ids, which become `prefix-0`, `prefix-1`, ...
        offered: names of tools that a bare call may have: an object of exactly `name` and `arguments`, on lines of its
            own or alone in a fence, in a text without any other such object. Without names no bare call is read.
    """
    if TAG not in text:
        found = _split_tagged_calls(text, prefix, offered) or _split_bare_call(text, f"{prefix}-0", offered)
        return found if found[1] else _refuse_foreign_call(text, f"{prefix}-0", offered)
    calls = tuple(
        _parse_block(f"{prefix}-{number}", block["call"], is_whole=block["end"] is not None)
        for number, block in enumerate(_BLOCK.finditer(text))
    )
    if not any(call.name for call in calls) and _FOREIGN.search(text):
        return _refuse_foreign_call(text, f"{prefix}-0", offered)
    return _BLOCK.sub("", text).replace("</tool_call>", "").strip(), calls


def bare_name(text: str) -> str | None:
    """The name in the one object of `name` and `arguments` that a text without calls holds; None without one."""
    value = _bare_call(text)
    return None if value is None else value[2]["name"]


def render_text_calls(calls: tuple[ToolCall, ...]) -> str:
    """The calls as Hermes text, as `split_text_calls` reads them."""
    return "\n".join(
        f"<tool_call>\n{json.dumps({'name': call.name, 'arguments': call.arguments}, ensure_ascii=False)}\n</tool_call>"
        for call in calls
    )


def describe_tools(tools: Sequence[ToolSchema]) -> str:
    """What a system message says of tools where the server knows none, and how to call them as text."""
    schemas = "\n".join(json.dumps(tool.as_openai(), ensure_ascii=False) for tool in tools)
    return (
        f"# Tools\n\nThe functions you may call:\n<tools>\n{schemas}\n</tools>\n\nCall one like this:\n"
        '<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>'
    )


def _split_tagged_calls(text: str, prefix: str, offered: Collection[str]) -> tuple[str, tuple[ToolCall, ...]] | None:
    """The text without the calls in it that are tagged and whole, and these calls; None without any."""
    found = [call for call in _FUNCTION.finditer(text) if call["end"] and (not offered or call["name"] in offered)]
    calls = tuple(_tagged_call(f"{prefix}-{number}", call, is_whole=True) for number, call in enumerate(found))
    for call in reversed(found):
        text = text[: call.start()] + text[call.end() :]
    return (text.strip(), calls) if calls else None


def _tagged_call(call_id: str, tagged: re.Match[str], *, is_whole: bool) -> ToolCall:
    """A call whose name and arguments are tags; the arguments are texts, which the tool reads by their types."""
    name, body = tagged["name"], tagged["body"]
    if not is_whole:
        return _unreadable(call_id, name, tagged[0], "the call has no end: it lacks </function>")
    between = _PARAMETER.sub("", body).strip()
    if between:
        return _unreadable(
            call_id, name, tagged[0], f"{clean(between[:_BEFORE])!r} is outside of the parameters of the call"
        )
    arguments: Any = clean_json({field["name"]: field["value"] for field in _PARAMETER.finditer(body)})
    return ToolCall(id=call_id, name=name, arguments=arguments)


def _split_bare_call(text: str, call_id: str, offered: Collection[str]) -> tuple[str, tuple[ToolCall, ...]]:
    found = _bare_call(text) if offered else None
    if found is None or found[2]["name"] not in offered:
        return text, ()
    start, end, value = found
    arguments: Any = clean_json(value["arguments"])
    call = ToolCall(id=call_id, name=value["name"], arguments=arguments)
    return (text[:start] + text[end:]).strip(), (call,)


def _refuse_foreign_call(text: str, call_id: str, offered: Collection[str]) -> tuple[str, tuple[ToolCall, ...]]:
    """The text before a call in a format that is not read, and that call; the text alone where there is none."""
    found = _FOREIGN.search(text) if offered else None
    if found is None or (found["name"] is not None and found["name"] not in offered):
        return text, ()
    refused = _unreadable(call_id, "", text[found.start() :], "calls in this format are not read")
    return text[: found.start()].strip(), (refused,)


def _bare_call(text: str) -> tuple[int, int, dict[str, Any]] | None:
    """The one object in a text, where it starts and ends, if it has what a call has and nothing else."""
    found = list(_objects(text)) if '"arguments"' in text or '"parameters"' in text else []
    if len(found) != 1:
        return None
    start, end, value = found[0]
    if value.keys() == {"name", "parameters"} and "properties" not in value["parameters"]:  # else it is a schema
        value = {"name": value["name"], "arguments": value["parameters"]}
    if value.keys() != {"name", "arguments"} or not isinstance(value["name"], str) or _is_deep(value):
        return None
    return (start, end, value) if isinstance(value["arguments"], dict) else None


def _objects(text: str) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """JSON objects outside of fences, and in fences of JSON or of no language: start and end with the fence, value.

    An object that shares its fence with anything else is given as an empty one: it counts, but is no call.
    """
    position = 0
    for fence in FENCE.finditer(text):
        yield from _whole_line_objects(text[position : fence.start()], position)
        position = fence.end()
        if fence["language"].lower() not in {"", "json"}:
            continue
        for start, end, value in _whole_line_objects(fence["body"], 0):
            alone = not (fence["body"][:start] + fence["body"][end:]).strip()
            yield fence.start(), fence.end(), value if alone else {}
    yield from _whole_line_objects(text[position:], position)


def _whole_line_objects(text: str, offset: int) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """JSON objects that share no line with anything else: start, end (both plus `offset`), value.

    One that brackets, a comma or an assignment around it make part of something larger is given as an empty one.
    """
    end = 0
    for line in _OBJECT_START.finditer(text):
        if line.start() < end:
            continue
        try:
            value, stop = _DECODER.raw_decode(text, line.end())
        except (ValueError, RecursionError):
            continue
        end = stop
        rest = _LINE_END.match(text, stop)
        if rest:
            part = text[: line.start()].rstrip().endswith(_OPENING) or text[rest.end() :].lstrip().startswith(_CLOSING)
            yield offset + line.start(), offset + rest.end(), {} if part else value


def _parse_block(call_id: str, block: str, *, is_whole: bool) -> ToolCall:
    tagged = _FUNCTION.match(block)
    if tagged:
        return _tagged_call(call_id, tagged, is_whole=is_whole and tagged["end"] is not None)
    try:
        value = _loads(block)
    except ValueError as error:
        repaired = _repaired(block) if is_whole else None
        if repaired is not None:
            return _object_call(call_id, repaired["name"], repaired["arguments"], block)
        named = _NAME.search(block)
        return _unreadable(
            call_id, named[1] if named else "", block, f"the call is not valid JSON: {_what_is_wrong(error)}"
        )
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return _unreadable(call_id, "", block, 'the call must be an object {"name": ..., "arguments": {...}}')
    arguments = value.get("arguments", value.get("parameters"))
    if arguments is None or isinstance(arguments, str):
        return parse_native(call_id, value["name"], arguments)
    return _object_call(call_id, value["name"], arguments, block)


def _object_call(call_id: str, name: str, arguments: Any, raw: str) -> ToolCall:
    """A call with arguments that are a JSON value already; `raw` is the text that it was read from."""
    if not isinstance(arguments, Mapping):
        return _unreadable(call_id, name, raw, f"the arguments must be a JSON object, not {_kind(arguments)}")
    if _is_deep(arguments):
        return _unreadable(call_id, name, raw, f"the arguments are {TOO_DEEP}")
    cleaned: Any = clean_json(dict(arguments))
    return ToolCall(id=call_id, name=name, arguments=cleaned)


def _loads(text: str) -> Any:
    """JSON as the standard has it, lone surrogates replaced. Raises ValueError, also for what nests too deeply."""
    try:
        value = _DECODER.decode(text)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    if _is_deep(value):
        raise ValueError(TOO_DEEP)
    return clean_json(value)


def _is_deep(value: Any) -> bool:
    """Whether lists and objects are nested in more than MAX_DEPTH levels."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        nested = (item for item in level if isinstance(item, (Mapping, list)))
        level = [inner for item in nested for inner in (item.values() if isinstance(item, Mapping) else item)]
    return bool(level)


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"{text} is too large")
    return value


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite)


def _repaired(block: str) -> dict[str, Any] | None:
    """A call with missing brackets, commas or escapes put right; None where more than that is wrong."""
    try:
        value = json_repair.loads(block, skip_json_loads=True)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or value.keys() != {"name", "arguments"}:
        return None
    return value if isinstance(value["name"], str) and isinstance(value["arguments"], dict) else None


def _what_is_wrong(error: ValueError) -> str:
    """The error with the text before it instead of a position, which models cannot count to."""
    if not isinstance(error, json.JSONDecodeError):
        return str(error)
    before = clean(error.doc[max(0, error.pos - _BEFORE) : error.pos])
    hint = r"; within a string, write \" for a quotation mark and \\ for a backslash"
    return f"{error.msg} after {before!r}{hint if _IN_STRING.search(error.msg) else ''}"


def _unreadable(call_id: str, name: str, raw: str, why: str) -> ToolCall:
    return ToolCall(id=call_id, name=name, parse_error=why, raw=clean(raw))


def _kind(value: Any) -> str:
    return {list: "a list", str: "a text", bool: "a boolean"}.get(type(value), "a number")

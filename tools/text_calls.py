"""Tool calls as models write them: the provider's native form, and Hermes text.

    <tool_call>
    {"name": "view", "arguments": {"path": "cart.py"}}
    </tool_call>

What cannot be read becomes a `ToolCall` with `parse_error`, which the environment answers with how to call it right.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from gumshoe.records import ToolCall, ToolSchema
from gumshoe.tools.text import clean, clean_json

__all__ = ["TAG", "describe_tools", "parse_native", "render_text_calls", "split_text_calls"]

TAG = "<tool_call>"
_BLOCK = re.compile(r"<tool_call>\s*(.*?)\s*(?:</tool_call>|(?=<tool_call>)|\Z)", re.DOTALL)
_NAME = re.compile(r'"name"\s*:\s*"([^"]*)"')


def parse_native(call_id: str, name: str, arguments: str | Mapping[str, Any] | None) -> ToolCall:
    """A call in the provider's own form. `arguments` is JSON text; some servers send an object, or nothing."""
    if isinstance(arguments, Mapping):
        return ToolCall(id=call_id, name=name, arguments=dict(arguments))
    text = arguments or ""
    if not text.strip():
        return ToolCall(id=call_id, name=name)
    try:
        value = _loads(text)
    except ValueError as error:
        return _unreadable(call_id, name, text, f"the arguments are not valid JSON: {error}")
    if value is None:
        return ToolCall(id=call_id, name=name)
    if not isinstance(value, dict):
        return _unreadable(call_id, name, text, f"the arguments must be a JSON object, not {_kind(value)}")
    return ToolCall(id=call_id, name=name, arguments=value)


def split_text_calls(text: str, *, prefix: str) -> tuple[str, tuple[ToolCall, ...]]:
    """The text without its `<tool_call>` blocks, and the calls in them.

    Args:
        text: what the model wrote; a last block may be left open, as when it ran into its length limit.
        prefix: start of the calls' ids, which become `prefix-0`, `prefix-1`, ...
    """
    if TAG not in text:
        return text, ()
    blocks = _BLOCK.findall(text)
    calls = tuple(_parse_block(f"{prefix}-{number}", block) for number, block in enumerate(blocks))
    return _BLOCK.sub("", text).replace("</tool_call>", "").strip(), calls


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


def _parse_block(call_id: str, block: str) -> ToolCall:
    try:
        value = _loads(block)
    except ValueError as error:
        named = _NAME.search(block)
        return _unreadable(call_id, named[1] if named else "", block, f"the call is not valid JSON: {error}")
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return _unreadable(call_id, "", block, 'the call must be an object {"name": ..., "arguments": {...}}')
    arguments = value.get("arguments", value.get("parameters"))
    if arguments is None or isinstance(arguments, (str, Mapping)):
        return parse_native(call_id, value["name"], arguments)
    return _unreadable(call_id, value["name"], block, f"the arguments must be a JSON object, not {_kind(arguments)}")


def _loads(text: str) -> Any:
    """JSON as the standard has it, lone surrogates replaced. Raises ValueError, also for what nests too deeply."""
    try:
        return clean_json(json.loads(text, parse_constant=_refuse_constant, parse_float=_finite))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"{text} is too large")
    return value


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _unreadable(call_id: str, name: str, raw: str, why: str) -> ToolCall:
    return ToolCall(id=call_id, name=name, parse_error=why, raw=clean(raw))


def _kind(value: Any) -> str:
    return {list: "a list", str: "a text", bool: "a boolean"}.get(type(value), "a number")

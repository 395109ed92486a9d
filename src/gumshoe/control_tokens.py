"""Control tokens of chat templates in text from outside, such as a file that holds `<|im_start|>`.

Servers tokenize a whole rendered conversation, so a control token that a tool result quotes would become a real one.
Text that goes into a conversation is therefore escaped: an invisible character (U+2060, WORD JOINER) after the first
character of the token takes it apart for every tokenizer. What a model writes is unescaped before it is used. Training
escapes in the same way, so that what is trained is what is served.

The tokens of common templates are known by their form: ChatML, Llama, Mistral, Gemma, DeepSeek, Phi, Granite, Cohere,
and the tokens for code of StarCoder and SmolLM2. Training refuses a row with any other control token of its tokenizer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from pydantic import JsonValue

__all__ = ["escape", "escape_chat", "escape_json", "unescape", "unescape_json"]

JOINER = "\u2060"
_ANGLED = (
    r"[|\uff5c][^\s<>]{1,80}>|[^\s<>|\uff5c\u2060]{1,80}[|\uff5c]>|"
    r"(?:/?s|bos|eos|pad|unk|mask|sop|eop|(?:start|end|beginning)_of_\w{1,40}|fim_\w{1,20}|repo_?name|file_?sep|filename|"
    r"gh_stars|issue_\w{1,20}|jupyter_\w{1,20}|empty_output|commit_\w{1,20}|unused\d{1,4}|extra_id_\d{1,4})>"
)
_SQUARE = (
    r"/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_RESULTS|TOOL_CALLS|TOOL_CONTENT|ARGS|CALL_ID|THINK|IMG(?:_BREAK|_END)?|"
    r"PREFIX|MIDDLE|SUFFIX|gMASK)\]"
)
_TAG = r"/?(?:tool_call|tool_response|tools|think)>"
_TOKENS = rf"<(?={{joiner}}(?:{_ANGLED}))|\[(?={{joiner}}(?:{_SQUARE}))"
_TAGS = rf"{_TOKENS}|<(?={{joiner}}{_TAG})"
_ESCAPE, _ESCAPE_TAGS = (re.compile(pattern.replace("{joiner}", "")) for pattern in (_TOKENS, _TAGS))
_UNESCAPE = re.compile(f"({_TAGS.replace('{joiner}', JOINER)}){JOINER}")


def escape(text: str, *, tags: bool = False) -> str:
    """The text with every control token taken apart.

    Args:
        text: any text; escaping it again changes nothing.
        tags: also take apart the tags of tool calls, tool results and reasoning. They are single tokens for many
            tokenizers, but an assistant and its instructions write them with good reason.
    """
    return (_ESCAPE_TAGS if tags else _ESCAPE).sub(rf"\g<0>{JOINER}", text)


def unescape(text: str) -> str:
    """The text as it was before `escape`."""
    return _UNESCAPE.sub(r"\1", text) if JOINER in text else text


def escape_json(value: Any, *, tags: bool = False) -> Any:
    """`value`, of what JSON can hold, with every text in it escaped, keys included."""
    if isinstance(value, str):
        return escape(value, tags=tags)
    if isinstance(value, Mapping):
        pairs = cast("Mapping[Any, Any]", value).items()
        return {escape_json(key, tags=tags): escape_json(item, tags=tags) for key, item in pairs}
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [escape_json(item, tags=tags) for item in cast("Sequence[Any]", value)]
    return value


def unescape_json(value: JsonValue) -> JsonValue:
    """`value` with every text in it unescaped, keys included."""
    if isinstance(value, str):
        return unescape(value)
    if isinstance(value, list):
        return [unescape_json(item) for item in value]
    if isinstance(value, dict):
        return {unescape(key): unescape_json(item) for key, item in value.items()}
    return value


def escape_chat(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Messages in the form of the chat API with all of their text escaped; in tool results and calls, tags as well."""
    return [{key: _escape_part(message, key) for key in message} for message in messages]


def _escape_part(message: Mapping[str, Any], key: str) -> Any:
    if key == "tool_calls" and isinstance(message[key], Sequence):
        return [_escape_call(call) for call in message[key]]
    return escape_json(message[key], tags=message.get("role") == "tool")


def _escape_call(call: Any) -> Any:
    """A call; arguments that are JSON text are escaped in what they say, whatever spells it."""
    match call:
        case {"function": {"arguments": str(arguments), **function}, **rest}:
            try:
                value = json.loads(arguments)
            except (ValueError, RecursionError):
                value = None
            if value != (escaped := escape_json(value, tags=True)):
                arguments = json.dumps(escaped, ensure_ascii=False)
            return escape_json({**rest, "function": {**function, "arguments": arguments}}, tags=True)
        case _:
            return escape_json(call, tags=True)

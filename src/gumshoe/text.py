"""Text from outside, which may hold anything, made safe for files, terminals and chat templates.

Lone surrogates are halves of characters, which JSON can spell but no file in UTF-8 can hold: `clean` replaces them.
Control characters would steer a terminal: `visible` shows them as escapes.

Control tokens of chat templates, such as `<|im_start|>`, are what servers find when they tokenize a whole rendered
conversation, so one that a tool result quotes would become a real one. Text that goes into a conversation is therefore
escaped: an invisible character (U+2060, WORD JOINER) after the first character of the token takes it apart for every
tokenizer. What a model writes is unescaped before it is used. Training escapes in the same way, so that what is trained
is what is served. The tokens of common templates are known by their form: ChatML, Llama, Mistral, Gemma, DeepSeek, Phi,
Granite, Cohere, and the tokens for code of StarCoder and SmolLM2. Training refuses a row with any other control token
of its tokenizer.

Text for models and people is cut to a length, stripped of what only a terminal reads, and searched for
fences of Markdown.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from pydantic import JsonValue

_SURROGATE = re.compile("[\ud800-\udfff]")
_SPELLED = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")
_SPELLED_BYTES = re.compile(rb"\\u[dD][89a-fA-F]|\xed[\xa0-\xbf]")

# Control characters (C0 without tabs and line ends, DEL, C1), and the characters that turn the direction of text.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")

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

FENCE = re.compile(
    r"^ {0,3}(?P<mark>```+)[ \t]*(?P<language>[^\s`]*)[^\n`]*\n(?P<body>.*?)(?:^ {0,3}(?P=mark)`*[ \t\r]*$|\Z)",
    re.DOTALL | re.MULTILINE,
)
"""A fenced block, with `language` and `body`; the last one may be left open."""
_TERMINAL = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[@-_])|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def clean(text: str) -> str:
    """`text` without lone surrogates, which neither UTF-8 nor JSON can carry."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def clean_json(value: JsonValue) -> JsonValue:
    """`value` with every text in it cleaned."""
    return _map_texts(value, clean)


def _map_texts(value: Any, function: Callable[[str], str]) -> Any:
    """`value`, of what JSON can hold, with `function` applied to every text in it, keys included."""
    if isinstance(value, str):
        return function(value)
    if isinstance(value, Mapping):
        pairs = cast("Mapping[Any, Any]", value).items()
        return {_map_texts(key, function): _map_texts(item, function) for key, item in pairs}
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [_map_texts(item, function) for item in cast("Sequence[Any]", value)]
    return value


def may_hold_surrogates(text: str | bytes) -> bool:
    """Whether what a JSON text says may have a surrogate in it, alone or in a pair."""
    return bool(_SPELLED.search(text) if isinstance(text, str) else _SPELLED_BYTES.search(text))


def visible(text: str) -> str:
    """`text` with control characters as escapes, so that it cannot control a terminal.

    What comes from tasks, programs and models may contain anything.
    """
    return _CONTROLS.sub(_escape_control, text.replace("\r\n", "\n"))


def _escape_control(match: re.Match[str]) -> str:
    code = ord(match[0])
    # As in JSON, so that a text of JSON keeps its value: it has none of the first 32 as they are.
    return f"\\x{code:02x}" if code < 0x20 else f"\\u{code:04x}"


def escape(text: str, *, tags: bool = False) -> str:
    """The text with every control token taken apart.

    Args:
        text: any text; escaping it again changes nothing.
        tags: also take apart the tags of tool calls, tool results and reasoning. They are single tokens for many
            tokenizers, but an assistant and its instructions write them with good reason.
    """
    return (_ESCAPE_TAGS if tags else _ESCAPE).sub(_take_apart, text)


def _take_apart(match: re.Match[str]) -> str:
    return match[0] + JOINER


def unescape(text: str) -> str:
    """The text as it was before `escape`."""
    return _UNESCAPE.sub(r"\1", text) if JOINER in text else text


def escape_json(value: Any, *, tags: bool = False) -> Any:
    """`value`, of what JSON can hold, with every text in it escaped, keys included."""
    return _map_texts(value, partial(escape, tags=tags))


def unescape_json(value: JsonValue) -> JsonValue:
    """`value` with every text in it unescaped, keys included."""
    return _map_texts(value, unescape)


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


def cut(text: str, limit: int) -> tuple[str, bool]:
    """`text` in at most about `limit` characters, head and tail kept and the cut marked, and whether it was cut."""
    if len(text) <= limit:
        return text, False
    head = limit // 2
    tail = limit - head
    return f"{text[:head]}\n[... {len(text) - limit} characters cut ...]\n{text[len(text) - tail :]}", True


def cut_line(line: str, limit: int = 240) -> str:
    """One line in at most `limit` characters, its end replaced by an ellipsis."""
    return line if len(line) <= limit else line[: limit - 1] + "…"


def indentation(line: str) -> int:
    """The number of blanks in front of a line's text."""
    return len(line) - len(line.lstrip())


def plain_text(printed: str) -> str:
    """What a terminal would have shown at the end: no escape sequences, no text written over by carriage returns."""
    lines = _TERMINAL.sub("", printed).split("\n")
    return "\n".join(line.rstrip("\r").rpartition("\r")[2].rstrip() for line in lines)


def did_you_mean(given: object, known: Iterable[str]) -> str:
    """The hint after a message about an unknown name, `; did you mean 'x'?`; empty if no known name is near."""
    nearest = difflib.get_close_matches(str(given), list(known), n=1)
    return f"; did you mean {nearest[0]!r}?" if nearest else ""


def unknown_choice(what: str, given: object, known: Iterable[str]) -> str:
    """The message about a value that is none of the known ones: the nearest of them, and all."""
    known = list(known)
    return f"unknown {what} {given!r}{did_you_mean(given, known) or ';'} known: {', '.join(known) or 'none'}"


def plural(count: int, noun: str) -> str:
    """`1 line`, `2 lines`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"

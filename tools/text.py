"""Text for the model and from it: cut, made plain, and the fences of Markdown found."""

from __future__ import annotations

import re

__all__ = ["FENCE", "TEXT_LIMIT", "cut", "cut_line", "indentation", "plain_text", "plural"]

TEXT_LIMIT = 8000
"""Characters of an observation's text; what is longer loses its middle."""

FENCE = re.compile(
    r"^ {0,3}(?P<mark>```+)[ \t]*(?P<language>[^\s`]*)[^\n`]*\n(?P<body>.*?)(?:^ {0,3}(?P=mark)`*[ \t\r]*$|\Z)",
    re.DOTALL | re.MULTILINE,
)
"""A fenced block, with `language` and `body`; the last one may be left open."""

_ESCAPES = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[@-_])|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


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
    lines = _ESCAPES.sub("", printed).split("\n")
    return "\n".join(line.rstrip("\r").rpartition("\r")[2].rstrip() for line in lines)


def plural(count: int, noun: str) -> str:
    """`1 line`, `2 lines`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"

"""Standard output and error, whatever text is printed and whatever the terminal's encoding lacks."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, TextIO, cast

__all__ = ["print_json", "print_text", "screened_streams", "visible"]

# Control characters (C0 without tabs and line ends, DEL, C1), and the characters that turn the direction of text.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def visible(text: str) -> str:
    """`text` with control characters as escapes, so that it cannot control a terminal.

    What comes from tasks, programs and models may contain anything.
    """
    return _CONTROLS.sub(_escape, text.replace("\r\n", "\n"))


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    # As in JSON, so that a text of JSON keeps its value: it has none of the first 32 as they are.
    return f"\\x{code:02x}" if code < 0x20 else f"\\u{code:04x}"


@contextmanager
def screened_streams() -> Generator[None]:
    """Within, what is printed is made `visible`, and characters that the encoding lacks are replaced.

    After an exception the streams stay so, for the traceback that Python prints of it.
    """
    before = sys.stdout, sys.stderr
    for stream in before:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    sys.stdout, sys.stderr = (
        stream if isinstance(stream, _Screened) else cast(TextIO, _Screened(stream)) for stream in before
    )
    yield
    sys.stdout, sys.stderr = before


class _Screened:
    """A stream that makes what is written visible; all else is that of the stream behind it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.rich_proxied_file = stream
        """Where Rich writes: `gumshoe.console.Console` makes the text visible itself, and adds colors to it."""

    def write(self, text: str) -> int:
        # A line of progress begins at the start of the line before.
        start, rest = ("\r", text[1:]) if text.startswith("\r") else ("", text)
        self._stream.write(start + visible(rest))
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def print_json(value: object) -> None:
    """Prints JSON, readable where the encoding allows it, and the same value in any encoding."""
    readable = (sys.stdout.encoding or "").lower().startswith("utf")
    print(json.dumps(value, indent=2, ensure_ascii=not readable))


def print_text(text: str) -> None:
    """Prints a text for programs to read, such as a patch: in UTF-8, and with nothing replaced off a terminal."""
    sys.stdout.flush()
    if sys.stdout.isatty() or not hasattr(sys.stdout, "buffer"):
        sys.stdout.write(text)
    else:
        sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape"))
    sys.stdout.flush()

"""Standard output and error, whatever text is printed and whatever the terminal's encoding lacks."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, TextIO, cast

from gumshoe.text import visible


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


class StatusLine:
    """How something is getting on: on a terminal, one line that is written over; elsewhere, a line for each text."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._width = 0
        self.is_terminal = stream.isatty()

    def show(self, text: str) -> None:
        """Shows a text. Blanks cover the rest of a longer one, as `screened_streams` lets no escape sequence pass."""
        if not self.is_terminal:
            print(text, file=self._stream, flush=True)
            return
        self._stream.write(f"\r{text.ljust(self._width)}")
        self._stream.flush()
        self._width = len(text)

    def clear(self) -> None:
        """Makes the line of a terminal empty, with the cursor at its beginning."""
        if self.is_terminal:
            self.show("")
            self.show("")

    def keep(self) -> None:
        """Leaves the line of a terminal as it is; what follows goes below it."""
        if self.is_terminal:
            print(file=self._stream, flush=True)
            self._width = 0


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

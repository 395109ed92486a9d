"""Printing where the terminal's encoding lacks characters."""

from __future__ import annotations

import io
import json
import sys

__all__ = ["print_json", "print_text", "replace_unprintable"]


def replace_unprintable() -> None:
    """Lets characters that the terminal's encoding lacks be replaced: one of them must not end a run."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def print_json(value: object) -> None:
    """Prints JSON, readable where the encoding allows it, and the same value in any encoding."""
    readable = (sys.stdout.encoding or "").lower().startswith("utf")
    print(json.dumps(value, indent=2, ensure_ascii=not readable))


def print_text(text: str) -> None:
    """Prints a text for programs to read, such as a patch: always in UTF-8, with nothing replaced."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape"))
    else:
        sys.stdout.write(text)
    sys.stdout.flush()

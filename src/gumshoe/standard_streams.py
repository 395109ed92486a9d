"""Standard input, output and error: where one is closed, such as by `<&-` in a shell, or takes only some characters."""

from __future__ import annotations

import io
import json
import os
import sys
from typing import IO

__all__ = ["open_missing_streams", "print_json", "print_text", "replace_unprintable"]

MODES = {"stdin": "r", "stdout": "w", "stderr": "w"}


def open_missing_streams() -> None:
    """Puts the null device in the place of each standard stream that is closed.

    Other files would take their numbers otherwise, and would be lost in every program that is started.
    """
    for number, (name, mode) in enumerate(MODES.items()):
        try:
            os.fstat(number)
        except OSError:
            # The lowest free number is taken, and those below this one are open.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
        stream: IO[str] | None = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(number, mode, encoding="utf-8", errors="replace", closefd=False))  # noqa: SIM115


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

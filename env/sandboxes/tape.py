"""Reading the output that a warden kept."""

from __future__ import annotations

import base64
from typing import Any

__all__ = ["text_of"]


def text_of(tape: dict[str, Any]) -> tuple[str, bool]:
    """The text of an output and whether its middle was cut out. Bytes that are not UTF-8 are replaced."""
    head = base64.b64decode(tape["head"])
    tail = base64.b64decode(tape["tail"])
    if not tape["cut"]:
        return (head + tail).decode("utf-8", "replace"), False
    mark = f"\n[... {tape['cut']} bytes cut ...]\n"
    return head.decode("utf-8", "replace") + mark + tail.decode("utf-8", "replace"), True

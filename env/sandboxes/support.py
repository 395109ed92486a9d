"""Gumshoe's modules that are injected into sandboxes: the debugger, the pytest plugins."""

from __future__ import annotations

import functools
import hashlib
import json
from pathlib import Path

__all__ = ["support_modules", "support_version"]


@functools.cache
def support_modules() -> dict[str, str]:
    """The modules' sources by file name."""
    folder = Path(__file__).parent.parent.parent / "tools" / "inside"
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.glob("gumshoe_*.py"))}


@functools.cache
def support_version() -> str:
    """A name for exactly these sources."""
    return hashlib.sha256(json.dumps(support_modules()).encode()).hexdigest()

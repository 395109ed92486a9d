"""Processes below this one."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def descendants(pid: int) -> set[int]:
    """All processes below `pid` that have not ended."""
    found: set[int] = set()
    for place in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, place.read_text().split()):
                if state(child) not in {"Z", ""}:
                    found |= {child, *descendants(child)}
    return found


def state(pid: int) -> str:
    """The state letter of a process; empty where there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""

"""Lines as diffs count them: ended by a newline and by nothing else."""

from __future__ import annotations

from io import StringIO

__all__ = ["split_lines"]


def split_lines(text: str) -> list[str]:
    r"""The lines of `text` with their ends. Form feeds and `\r` are ordinary characters, unlike in `str.splitlines`."""
    return StringIO(text, newline="\n").readlines()

"""Removes keys from what is shown or stored, even when a server echoes only part of one."""

from __future__ import annotations

import re

__all__ = ["redact", "redact_answer"]

MARK = "[key]"
MIN_KEY = 6
MIN_PART = 8
MIN_END = 3
MIN_SECRET = 16
"""Shorter keys are the dummies of local servers (`EMPTY`, `not-needed`), which may be ordinary words in an answer."""

_MASK = r"(?:\*{2,}|\.{3,}|…|•{2,}|x{4,}|X{4,})"


def redact(text: str, key: str) -> str:
    """`text` with the key, every run of 8 or more characters of it, and masked forms (`sk-ab***wxyz`) replaced.

    Meant for error messages and logs.
    """
    if len(key) < MIN_KEY or not text:
        return text
    return _without_masked(_without_runs(text.replace(key, MARK), key, MIN_PART), key)


def redact_answer(text: str, key: str) -> str:
    """A model's `text` without the key or long runs of it; dummies and short runs stay, as they may be intended."""
    return text if len(key) < MIN_SECRET else _without_runs(text.replace(key, MARK), key, MIN_SECRET)


def _without_runs(text: str, key: str, size: int) -> str:
    """`text` with each maximal run of `size` characters or more that also occurs in the key replaced."""
    if len(key) < size:
        return text
    parts = {key[start : start + size] for start in range(len(key) - size + 1)}
    pieces: list[str] = []
    position = 0
    while position < len(text):
        if text[position : position + size] not in parts:
            pieces.append(text[position])
            position += 1
            continue
        end = position + size
        while end < len(text) and text[end - size + 1 : end + 1] in parts:
            end += 1
        pieces.append(MARK)
        position = end
    return "".join(pieces)


def _without_masked(text: str, key: str) -> str:
    """`text` without forms such as `sk-ab***wxyz`: a beginning of the key, a mask, an end of it, or only one end."""
    word = r"[\w\-]*"

    def hidden(match: re.Match[str]) -> str:
        head, tail = match["head"], match["tail"]
        begins = len(head) >= MIN_END and key.startswith(head)
        ends = len(tail) >= MIN_END and key.endswith(tail)
        return MARK if begins or ends else match[0]

    return re.sub(f"(?P<head>{word}){_MASK}(?P<tail>{word})", hidden, text)

"""What training and serving must agree on about the turns of an episode.

A model is trained on the conversations that an agent with a limited context sees, and is measured by the same faults
that are masked in training. Both sides import this module, and neither imports the other.
"""

from __future__ import annotations

import re

__all__ = ["INVALID_KINDS", "KEEP_TURNS", "STEP", "left_out"]

KEEP_TURNS = 2
"""This many of the latest turns are shown whole, if there is room."""

STEP = re.compile(r"\A\[step \d+\] ")
"""How an observation begins: with the step that made it."""

INVALID_KINDS = frozenset({"unreadable_call", "unknown_tool", "bad_arguments"})
"""Kinds of failures that say the call itself was wrong, not that what it asked for was missing."""


def left_out(text: str) -> str:
    """What stands in place of an observation that is left out; the observation itself if that is no longer."""
    head = STEP.match(text)
    prefix = head[0] if head else ""
    short = f"{prefix}[left out: {len(text) - len(prefix)} characters]"
    return short if len(short) < len(text) else text

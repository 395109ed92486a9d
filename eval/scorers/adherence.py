"""Whether a solver's patch touches what was reported to it."""

from __future__ import annotations

from gumshoe.env.diff.parse import gold_lines
from gumshoe.errors import TaskError
from gumshoe.eval.scorers.localization import first_right_rank
from gumshoe.records import ContextPack

__all__ = ["adherence"]


def adherence(pack: ContextPack | None, patch: str) -> float | None:
    """1.0 if the patch changes a line of a reported location, else 0.0; None without locations or without a patch.

    An insertion counts as a change of the line before it, as `gold_lines` has it.
    """
    if pack is None or not pack.locations or not patch.strip():
        return None
    try:
        changed = gold_lines(patch)
    except TaskError:
        return None
    return float(first_right_rank(pack.locations, changed) is not None)

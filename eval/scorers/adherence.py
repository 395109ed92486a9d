"""Whether a solver's patch touches what was reported to it."""

from __future__ import annotations

from gumshoe.eval.scorers.localization import changed_lines, first_right_rank
from gumshoe.records import ContextPack

__all__ = ["adherence"]


def adherence(pack: ContextPack | None, patch: str) -> float | None:
    """1.0 if the patch changes a line of a reported location, else 0.0; None without locations or without a patch.

    An insertion counts as a change of the line before it, as `gold_lines` has it.
    """
    changed = changed_lines(patch) if patch.strip() else None
    if pack is None or not pack.locations or changed is None:
        return None
    return float(first_right_rank(pack.locations, changed) is not None)

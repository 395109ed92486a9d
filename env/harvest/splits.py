"""Which packages are kept out of training; near-duplicates, such as a fork or a vendored copy, go together."""

from __future__ import annotations

import re
from collections.abc import Mapping

from gumshoe.env.synth.splits import heldout_names

__all__ = ["families", "heldout_packages"]

SAME = 0.3
"""Packages are near-duplicates from this share on: of the smaller one's lines, those that the other has too."""
LINE_CHARS = 20


def heldout_packages(sources: Mapping[str, str], share: float, seed: int) -> set[str]:
    """The packages that training never sees: whole families of near-duplicates, drawn from a seed.

    Args:
        sources: package to the text of its sources.
    """
    groups = families(sources)
    chosen = heldout_names([group[0] for group in groups], share, seed)
    return {name for group in groups if group[0] in chosen for name in group}


def families(sources: Mapping[str, str]) -> list[list[str]]:
    """The packages in groups of near-duplicates, all sorted."""
    lines = {name: _lines(text) for name, text in sources.items()}
    groups: list[list[str]] = []
    for name in sorted(sources):
        near = [group for group in groups if any(_alike(lines[name], lines[other]) for other in group)]
        merged = sorted([name, *(other for group in near for other in group)])
        groups = [*(group for group in groups if group not in near), merged]
    return sorted(groups)


def _lines(text: str) -> frozenset[str]:
    """The lines that say something of their own: long enough, without white space."""
    stripped = (re.sub(r"\s+", "", line) for line in text.splitlines())
    return frozenset(
        line for line in stripped if len(line) >= LINE_CHARS and not line.startswith(("#", "import", "from"))
    )


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    smaller = min(len(one), len(other))
    return smaller > 0 and len(one & other) >= SAME * smaller

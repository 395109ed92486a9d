"""The splits: which bugs, projects and packages are kept out of training. All are drawn from a seed."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence

__all__ = ["assign_splits", "families", "heldout_names", "heldout_packages"]

SAME = 0.3
"""Packages are near-duplicates from this share on: of the smaller one's lines, those that the other has too."""
LINE_CHARS = 20


def heldout_names(projects: Sequence[str], share: float, seed: int) -> set[str]:
    """The projects that training never sees: the share, rounded, but at least one where there are several.

    At least one project is left for training.
    """
    if share == 0 or len(projects) < 2:
        return set()
    count = min(max(1, round(share * len(projects))), len(projects) - 1)
    return set(_rng("projects", seed).sample(sorted(projects), count))


def assign_splits(functions: Mapping[str, str], share: float, seed: int) -> dict[str, str]:
    """`train` or `heldout_bugs` for each bug of a training project.

    All bugs with the same function go to the same side, so that no held-out bug has a twin in training. Whole functions
    are held out until the share is reached; the last function is never taken.

    Args:
        functions: bug id to the function that it is in; with `heldout_by: bug`, to a name that no other bug shares.
    """
    bugs: dict[str, list[str]] = {}
    for bug, function in functions.items():
        bugs.setdefault(function, []).append(bug)
    order = sorted(bugs)
    _rng("bugs", seed).shuffle(order)
    wanted = share * len(functions)
    held: set[str] = set()
    for function in order[:-1]:
        if len(held) + len(bugs[function]) / 2 <= wanted:
            held.update(bugs[function])
    return {bug: "heldout_bugs" if bug in held else "train" for bug in functions}


def _rng(purpose: str, seed: int) -> random.Random:
    return random.Random(f"gumshoe.synth {purpose} {seed}")


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

"""Which bugs are for training and which are kept out, drawn from a seed."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence

__all__ = ["assign_splits", "heldout_names", "joined"]


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

    All bugs of a function go to the same side, so that no held-out bug has a twin in training. Whole functions are
    held out until the share is reached; the last function is never taken.

    Args:
        functions: bug id to the function that it is in.
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


def joined(functions: Mapping[str, Collection[str]]) -> dict[str, str]:
    """For each bug one function that stands for all of its own, and for those of every bug that shares one with it.

    Args:
        functions: bug id to the functions that it is in.
    """
    group: dict[str, frozenset[str]] = {}
    for names in functions.values():
        whole = frozenset(names).union(*(group.get(name, ()) for name in names))
        group.update(dict.fromkeys(whole, whole))
    return {bug: min(group[next(iter(names))]) for bug, names in functions.items()}


def _rng(purpose: str, seed: int) -> random.Random:
    return random.Random(f"gumshoe.synth {purpose} {seed}")

"""Reference packs: one from the answer, one from reading alone."""

from __future__ import annotations

import re

from gumshoe.env.diff import gold_lines
from gumshoe.protocols import Workspace
from gumshoe.records import ContextPack, Location, Oracle

__all__ = ["oracle_pack", "static_pack"]

WORD = re.compile(r"[A-Za-z_]\w{2,}")
MOST_STATIC = 5


def oracle_pack(oracle: Oracle) -> ContextPack:
    """The lines that the gold patch touches: the most that any report could say about places."""
    gold = gold_lines(oracle.gold_patch)
    return ContextPack(
        locations=tuple(
            Location(path=path, start=line, end=line) for path, lines in sorted(gold.items()) for line in sorted(lines)
        )
    )


def static_pack(workspace: Workspace) -> ContextPack:
    """The functions that the problem statement names, found with grep alone: nothing is run.

    Functions whose name appears in the statement come first, ordered by how often it does; at most five.
    """
    words = WORD.findall(workspace.task.problem_statement)
    found: list[tuple[int, Location]] = []
    matches, _ = workspace.grep(r"^\s*(async\s+)?(def|class)\s+\w+", limit=1000)
    for number, match in enumerate(matches):
        name = re.sub(r"^\s*(async\s+)?(def|class)\s+", "", match.text).partition("(")[0].partition(":")[0].strip()
        mentions = words.count(name)
        if mentions and match.path.endswith(".py") and not workspace.is_readonly(match.path):
            following = (other.line for other in matches[number + 1 :] if other.path == match.path)
            end = max(match.line, next(following, match.line + 30) - 1)
            found.append((-mentions, Location(path=match.path, start=match.line, end=end, symbol=name)))
    found.sort(key=lambda pair: (pair[0], pair[1].path, pair[1].start))
    return ContextPack(locations=tuple(location for _, location in found[:MOST_STATIC]))

"""Reports whose findings cite what an episode showed."""

from __future__ import annotations

from typing import Any

from gumshoe.records import Fact, Observation
from gumshoe.tools.evidence.facts import all_facts
from support.tools.tool_bench import Bench

__all__ = ["PLACE", "TOOLS", "fact", "report"]

TOOLS = ("eval", "pdb", "whatif", "view", "report")
PLACE: Any = [{"path": "shop.py", "start": 5, "end": 9}]


def fact(bench: Bench, start: str) -> Fact:
    """The last fact of the episode whose text begins with some words."""
    return [each for each in all_facts(bench.env.toolbox.history) if each.quote.startswith(start)][-1]


def report(bench: Bench, *starts: str) -> Observation:
    """Reports the facts that begin with these words."""
    findings: Any = [{"fact": fact(bench, start).number, "claim": "it is so"} for start in starts]
    return bench.call("report", locations=PLACE, hypothesis="h", findings=findings)

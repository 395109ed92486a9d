"""Reports whose findings quote what an episode showed."""

from __future__ import annotations

from typing import Any

from gumshoe.records import Observation
from support.tools.tool_bench import Bench

__all__ = ["PLACE", "TOOLS", "finding", "report"]

TOOLS = ("eval", "pdb", "whatif", "view", "report")
PLACE: Any = [{"path": "shop.py", "start": 5, "end": 9}]


def finding(step: int, quote: str) -> Any:
    return {"claim": "it is so", "step": step, "quote": quote}


def report(bench: Bench, *findings: tuple[int, str]) -> Observation:
    return bench.call("report", locations=PLACE, hypothesis="h", findings=[finding(*each) for each in findings])

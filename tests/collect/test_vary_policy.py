"""The heuristic that varies the suspects: whole episodes in a sandbox."""

from __future__ import annotations

from pathlib import Path

import pytest

from gumshoe.collect.config import VaryConfig
from gumshoe.collect.data.unseen import unseen
from gumshoe.collect.policies.heuristics import VarySuspects
from gumshoe.collect.policies.strategy import StrategyPolicy
from gumshoe.errors import PolicyError
from gumshoe.records import StopReason, ToolSchema, Trajectory
from support.collect.seeker_episodes import play_seeker, shop_task, tools_called
from support.small_projects import BULK_PRICES

TOOLS = ("eval", "suspects", "vary", "report")
WITH_DEBUGGER = ("eval", "suspects", "vary", "pdb", "report")
SHOP = BULK_PRICES["shop.py"]


def play(folder: Path, shop: str, *, tools: tuple[str, ...] = TOOLS) -> Trajectory:
    task = shop_task(folder, shop, BULK_PRICES["test_shop.py"], "test_shop.py::test_ten_is_small fails")
    return play_seeker(task, VaryConfig(), tools)


def test_it_reports_the_line_where_a_change_repairs_everything(tmp_path: Path) -> None:
    found = play(tmp_path, SHOP)
    assert found.stop is StopReason.REPORTED
    pack = found.context_pack
    assert pack is not None
    (place,) = pack.locations
    assert (place.path, place.start, place.end, place.symbol) == ("shop.py", 2, 2, "is_large")
    assert "count > 10" in pack.findings[-1].quote
    assert found.steps[-1].confidence == 0.8
    assert [finding.check and finding.check.status for finding in pack.findings] == ["confirmed", "confirmed"]
    assert tools_called(found) == ["eval", "suspects", "vary", "report"]
    assert unseen(found) == []


def test_with_the_debugger_it_stops_there_and_cites_a_value(tmp_path: Path) -> None:
    found = play(tmp_path, SHOP, tools=WITH_DEBUGGER)
    assert tools_called(found) == ["eval", "suspects", "vary", "pdb", "report"]
    pack = found.context_pack
    assert pack is not None
    assert (pack.locations[0].start, pack.locations[0].symbol) == (2, "is_large")
    (finding,) = pack.findings
    assert (finding.step, finding.quote) == (3, "count = 2")
    assert finding.check is not None
    assert finding.check.status == "confirmed"
    assert unseen(found) == []


@pytest.mark.parametrize(
    ("cost", "confidence", "words"),
    [
        ("cost = sorted([count * 3, 30])[-1]", 0.6, "help some of the failing tests"),
        ("cost = int(str(count) * 3)", 0.4, "still the first suspect"),
    ],
    ids=["some-help", "nothing-helps"],
)
def test_where_no_change_repairs_the_function_is_reported_whole(
    tmp_path: Path, cost: str, confidence: float, words: str
) -> None:
    found = play(tmp_path, SHOP.replace(">= 10", "> 10").replace("cost = count * 3", cost))
    assert found.context_pack is not None
    (place,) = found.context_pack.locations
    assert (place.symbol, place.end - place.start) == ("price", 4)
    assert words in found.context_pack.hypothesis
    assert found.steps[-1].confidence == confidence
    assert {finding.check and finding.check.status for finding in found.context_pack.findings} == {"confirmed"}
    assert tools_called(found) == ["eval", "suspects", "vary", "report"]


def test_a_missing_tool_is_named() -> None:
    offered = [ToolSchema(name=name, description="", parameters={}) for name in ("eval", "suspects", "report")]
    with pytest.raises(PolicyError, match="needs the tool vary"):
        StrategyPolicy(VarySuspects()).complete([], offered)

"""The policy that only reads, from benchmarks: whole episodes in a sandbox."""

from __future__ import annotations

from pathlib import Path

from gumshoe.collect.config import CustomConfig
from gumshoe.records import StopReason, Trajectory
from support.collect.seeker_episodes import play_seeker, shop_task, tools_called

SHOP = """\
class Large:
    pass


def price(
    count,
):
    return count * 3 if count < 10 else count * 3 - 5


def total(counts):
    return sum(map(price, counts))
"""
TESTS = """\
from shop import Large, price, total

def test_price():
    assert isinstance(Large(), Large)
    assert price(10) == 25
    assert total([1, 2]) == 9
"""


def play(folder: Path, tests: str, error: str) -> Trajectory:
    task = shop_task(folder, SHOP, tests, f"test_shop.py::test_price fails:\n\n    {error}")
    return play_seeker(task, CustomConfig(path="benchmarks.results.reading_policy:make"), ("grep", "view", "report"))


def test_it_reports_the_function_that_the_test_is_named_after(tmp_path: Path) -> None:
    found = play(tmp_path, TESTS, "NameError: name 'total' is not defined")
    assert found.stop is StopReason.REPORTED
    assert tools_called(found) == ["grep", "view", "grep", "view", "report"]
    assert found.context_pack is not None
    (place,) = found.context_pack.locations
    assert (place.path, place.start, place.end, place.symbol) == ("shop.py", 5, 10, "price")
    assert found.errors == ()

"""trace: the calls of one function in failing and in passing tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gumshoe.env.inside.runs.calls import FIRST_STEPS
from gumshoe.tools.runs.trace_comparison import compare, summarize
from gumshoe.tools.runs.traced_calls import TracedCall, merge, read_trace
from support.tools.inside import record
from support.tools.tool_bench import Bench

Open = Callable[..., Bench]
TOOLS = ("trace", "eval", "view")

SHOP = """\
import asyncio
import contextlib


class Basket:
    def __init__(self, prices):
        self.prices = prices
        self.seen = 0

    def total(self, discount=0):
        total = 0
        for price in self.prices:
            self.seen += 1
            total += price
        if discount > 0:
            total -= discount * 2
        return total


def halves(count):
    for number in range(count):
        yield number / 2


@contextlib.contextmanager
def opened():
    try:
        yield 1
    finally:
        closed = True


def read(key, table):
    try:
        with opened():
            return table[key]
    except KeyError:
        pass
    with opened():
        return int(key)


async def fetch(delay):
    await asyncio.sleep(0)
    return delay + 1


def deep(count):
    return deep(count - 1) + 1 if count else 0
"""
TESTS = """\
import asyncio
import pytest
from shop import Basket, deep, fetch, halves, read


def test_plain():
    assert Basket([1, 2]).total() == 3


def test_discount():
    assert Basket([1, 2]).total(0) == 3
    assert Basket([1, 2]).total(1) == 2


def test_halves():
    assert list(halves(3)) == [0, 1, 2]


def test_read():
    assert read("a", {"a": 1}) == 1
    assert read("7", {}) == 7


def test_read_badly():
    assert read("b", {"a": 1}) == 1


def test_fetch():
    assert asyncio.run(fetch(1)) == 3


def test_deep():
    assert deep(300) == 300
"""
PLAIN, DISCOUNT, HALVES, READ, BADLY = (
    f"test_shop.py::test_{name}" for name in ("plain", "discount", "halves", "read", "read_badly")
)


@pytest.fixture
def shop(project: Path) -> Path:
    (project / "test_cart.py").unlink()
    (project / "shop.py").write_text(SHOP)
    (project / "test_shop.py").write_text(TESTS)
    return project


def test_trace(open_bench: Open, shop: Path) -> None:
    bench = open_bench(tools=TOOLS)
    observation = bench.call("trace", function="Basket.total")
    assert observation.text.splitlines() == [
        "Basket.total shop.py:10-17: 2 calls in 4 failing tests, 1 call in 3 passing tests",
        "only in failing tests: discount=1; returned 1; lines 16; branches 15->16, 16->17",
        f"call 2 in {DISCOUNT} from test_shop.py:12 test_discount",
        "  discount=1, self.prices=[1, 2], self.seen=0",
        "  11 total = 0  # total=0",
        "  12 for price in self.prices:  # price=1",
        "  13 self.seen += 1  # self.seen=1",
        "  14 total += price  # total=1",
        "  12 for price in self.prices:  # price=2",
        "  13 self.seen += 1  # self.seen=2",
        "  14 total += price  # total=3",
        "  12 for price in self.prices:",
        "  15 if discount > 0:",
        "  16 total -= discount * 2  # total=1",
        "  17 return total",
        "  returned 1",
        f"  nearest passing call: {PLAIN} call 1",
        "    arguments: discount=1 (passing 0)",
        "    first branch: after line 15 line 16, passing line 17; discount=1 (passing 0)",
        "    it returned 1; passing returned 3",
        f"call 1 in {DISCOUNT} from test_shop.py:11 test_discount",
        "  discount=0, self.prices=[1, 2], self.seen=0",
        "  returned 3",
        "  the same in a passing test",
    ]
    assert bench.workspace.patch() == ""


def test_the_data_of_a_call(open_bench: Open, shop: Path) -> None:
    data: Any = open_bench(tools=TOOLS).call("trace", function="shop.py:15").data
    assert data["function"] == {"path": "shop.py", "name": "Basket.total", "start": 10, "end": 17}
    assert (data["failed"], data["passed"], data["failing_tests"]) == (4, 3, [DISCOUNT])
    first, second = data["failing"]
    assert (first["number"], first["like_passing"], second["like_passing"]) == (2, False, True)
    assert first["steps"][-2] == [16, {"total": "1"}, ""]
    assert first["comparison"]["branch"] == {
        "step": 8,
        "line": 15,
        "failing": "line 16",
        "passing": "line 17",
        "values": {"discount": ["1", "0"]},
    }
    assert data["passing"][first["comparison"]["passing"]]["test"] == PLAIN
    assert data["differences"]["branches"] == [[[15, 16], [16, 17]], []]


def test_generators_coroutines_and_recursion(open_bench: Open, shop: Path) -> None:
    bench = open_bench(tools=TOOLS)
    (call,) = calls(bench, "halves")
    assert (call["yields"], call["outcome"], call["value"]) == (["0.0", "0.5", "1.0"], "returned", "None")
    (call,) = calls(bench, "fetch")
    assert (call["value"], call["yielded"], [step[0] for step in call["steps"]]) == ("2", 0, [44, 45])
    assert "301 calls in 3 passing tests" in bench.text("trace", function="deep")


def calls(bench: Bench, function: str) -> Any:
    observation = bench.call("trace", function=function)
    assert observation.failure is None, observation.text
    return observation.data["failing"]


def test_exceptions_through_with_and_finally(open_bench: Open, shop: Path) -> None:
    bench = open_bench(tools=TOOLS)
    (call,) = calls(bench, "read")
    assert call["outcome"] == "raised"
    assert call["value"].startswith("ValueError: invalid literal for int()")
    assert next(step[2] for step in call["steps"] if step[2]) == "KeyError: 'b'"
    opened: Any = bench.call("trace", function="opened").data
    assert {each["outcome"] for each in opened["passing"]} == {"returned", "raised"}


def test_functions_that_cannot_be_traced(open_bench: Open, shop: Path) -> None:
    bench = open_bench(tools=TOOLS)
    assert "no function missing in the workspace" in bench.text("trace", function="missing")
    assert "no_such.py" in bench.text("trace", function="no_such.py:total")
    assert "__init__ exists in several places: cart.py:5 (Cart.__init__), shop.py:6" in bench.text(
        "trace", function="__init__"
    )
    assert "name a function" in bench.text("trace", function="shop.py:")
    assert bench.text("trace", function="shop.Basket").startswith(
        "Basket.__init__ shop.py:6-8: 2 calls in 4 failing tests"
    )
    assert bench.text("trace", function="collect").startswith("collect cart.py:26-30: not called in 4 failing tests")


def test_other_runners(open_bench: Open, project: Path) -> None:
    (project / "shop.py").write_text(SHOP)
    (project / "test_unit.py").write_text(
        "import unittest\nfrom shop import Basket\n\nclass Case(unittest.TestCase):\n"
        "    def test_a(self):\n        self.assertEqual(Basket([4]).total(1), 3)\n"
        "    def test_b(self):\n        self.assertEqual(Basket([4]).total(), 4)\n"
    )
    (project / "check.py").write_text("from shop import Basket\nassert Basket([4]).total(1) == 3\n")
    (project / "runtests.py").write_text("import sys, pytest\nsys.exit(pytest.main(['-q', 'test_unit.py']))\n")
    seen: dict[str, str] = {}
    for entrypoint in ("-m unittest test_unit", "check.py", "runtests.py"):
        bench = open_bench(tools=TOOLS, entrypoint=("python", *entrypoint.split()))
        data: Any = bench.call("trace", function="Basket.total").data
        seen[entrypoint] = " ".join([data["failing"][0]["test"], str(data["failed"]), str(data["passed"])])
    assert seen == {
        "-m unittest test_unit": "test_unit.Case.test_a 1 1",
        "check.py": "check.py 1 0",
        "runtests.py": "test_unit.py::Case::test_a 1 1",
    }
    observation = open_bench(tools=TOOLS, entrypoint=("sh", "-c", "exit 1")).call("trace", function="Basket.total")
    assert observation.failure is not None


def test_the_script_on_other_pythons(python: str, shop: Path, tmp_path: Path) -> None:
    seen: dict[str, list[TracedCall]] = {}
    for name, line in (("read", 33), ("halves", 20)):
        trace = read_trace(record(python, shop, tmp_path, name, line))
        assert (trace.failed, trace.passed) == (4, 3)
        seen[name] = [*trace.passing, *trace.failing]
    assert [call.result.partition(":")[0] for call in seen["read"]] == ["returned 1", "returned 7", "raised ValueError"]
    assert [call.lines for call in seen["halves"]] == [[21, 22, 21, 22, 21, 22, 21]]


def call(arguments: dict[str, str], lines: list[int], value: str) -> TracedCall:
    return TracedCall(
        number=1,
        count=1,
        arguments=arguments,
        caller=None,
        steps=[(line, {}, "") for line in lines],
        skipped=0,
        outcome="returned",
        value=value,
        yields=[],
        yielded=0,
    )


def test_the_nearest_passing_call() -> None:
    failing = call({"a": "1", "b": "2"}, [1, 2, 3], "x")
    far = call({"a": "0", "b": "0"}, [1, 4], "y")
    near = call({"a": "0", "b": "2"}, [1, 2, 4], "y")
    found = compare(failing, [far, near], ["", "", ""])
    assert found is not None
    assert found.passing == 1
    assert found.branch is not None
    assert (found.branch.line, found.branch.failing, found.branch.passing) == (2, "line 3", "line 4")
    same = call({"a": "1", "b": "2"}, [1, 4], "y")
    found = compare(failing, [far, near, same], ["", "", ""])
    assert found is not None
    assert (found.passing, found.arguments, found.result) == (2, {}, ("returned x", "returned y"))
    assert compare(failing, [failing], []) is None


def test_no_branch_leads_over_steps_that_were_left_out() -> None:
    failing = call({}, [*range(1, FIRST_STEPS + 1), 900, 901], "x").model_copy(update={"skipped": 5})
    branches = summarize([failing], [call({}, [1], "x")]).branches.failing
    assert branches == [(line, line + 1) for line in range(1, FIRST_STEPS)]


def test_what_is_not_shown_is_no_difference() -> None:
    one, other = call({}, [1], "x"), call({}, [1], "<Big, not shown 1>")
    half = call({}, [1], "x").model_copy(update={"yields": ["1", "<Big, not shown 2>"], "yielded": 2})
    assert summarize([one], [other, half]).results == (["returned x"], [])
    for passing in (other, half):
        found = compare(one, [passing], [""])
        assert found is not None
        assert found.result is None


def test_equal_calls_of_several_tests_are_one() -> None:
    one = call({"a": "1"}, [1, 2], "x")
    calls = [one.model_copy(update={"test": name}) for name in "abca"]
    (merged, other) = merge([*calls, call({"a": "2"}, [1, 2], "x")])
    assert (merged.test, merged.also, other.also) == ("a", ["b", "c"], [])

"""trace: the calls of one function in failing and in passing tests."""

from pathlib import Path
from typing import Any

import pytest

from gumshoe.env.inside.runs.calls import FIRST_STEPS
from gumshoe.tools.runs.trace_comparison import compare, summarize
from gumshoe.tools.runs.traced_calls import TracedCall, merge
from support.folder_tasks import write_files
from support.tools.tool_bench import Open

TOOLS = ("trace", "eval", "view")

SHOP = """\
import asyncio
import contextlib

class Basket:
    def __init__(self, prices):
        self.prices = prices

    def total(self, discount=0):
        total = 0
        for price in self.prices:
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
PLAIN, DISCOUNT = "test_shop.py::test_plain", "test_shop.py::test_discount"


@pytest.fixture
def shop(project: Path) -> Path:
    (project / "test_cart.py").unlink()
    return write_files(project, {"shop.py": SHOP, "test_shop.py": TESTS})


def test_trace(open_bench: Open, shop: Path) -> None:
    bench = open_bench(tools=TOOLS)
    assert bench.lines("trace", function="Basket.total") == [
        "Basket.total shop.py:8-14: 2 calls in 4 failing tests, 1 call in 3 passing tests",
        "only in failing tests: discount=1; returned 1; lines 13; branches 12->13, 13->14",
        f"call 2 in {DISCOUNT} from test_shop.py:9 test_discount",
        "  discount=1, self.prices=[1, 2]",
        "  9 total = 0  # total=0",
        "  10 for price in self.prices:  # price=1",
        "  11 total += price  # total=1",
        "  10 for price in self.prices:  # price=2",
        "  11 total += price  # total=3",
        "  10 for price in self.prices:",
        "  12 if discount > 0:",
        "  13 total -= discount * 2  # total=1",
        "  14 return total",
        "  returned 1",
        f"  nearest passing call: {PLAIN} call 1",
        "    arguments: discount=1 (passing 0)",
        "    first branch: after line 12 line 13, passing line 14; discount=1 (passing 0)",
        "    it returned 1; passing returned 3",
        f"call 1 in {DISCOUNT} from test_shop.py:8 test_discount",
        "  discount=0, self.prices=[1, 2]",
        "  returned 3",
        "  the same in a passing test",
    ]
    data = bench.data("trace", function="shop.py:12")
    assert data["function"] == {"path": "shop.py", "name": "Basket.total", "start": 8, "end": 14}
    assert (data["failed"], data["passed"], data["failing_tests"]) == (4, 3, [DISCOUNT])
    first, second = data["failing"]
    assert (first["number"], first["like_passing"], second["like_passing"]) == (2, False, True)
    assert first["steps"][-2] == [13, {"total": "1"}, ""]
    branch = {"step": 6, "line": 12, "failing": "line 13", "passing": "line 14", "values": {"discount": ["1", "0"]}}
    assert first["comparison"]["branch"] == branch
    assert data["passing"][first["comparison"]["passing"]]["test"] == PLAIN
    assert data["differences"]["branches"] == [[[12, 13], [13, 14]], []]


def test_generators_coroutines_recursion_and_exceptions(open_bench: Open, shop: Path) -> None:
    bench = open_bench(tools=TOOLS)
    (call,) = bench.data("trace", function="halves")["failing"]
    assert (call["yields"], call["outcome"], call["value"]) == (["0.0", "0.5", "1.0"], "returned", "None")
    (call,) = bench.data("trace", function="fetch")["failing"]
    assert (call["value"], call["yielded"], [step[0] for step in call["steps"]]) == ("2", 0, [37, 38])
    assert "301 calls in 3 passing tests" in bench.text("trace", function="deep")
    (call,) = bench.data("trace", function="read")["failing"]
    assert call["outcome"] == "raised"
    assert call["value"].startswith("ValueError: invalid literal for int()")
    assert next(step[2] for step in call["steps"] if step[2]) == "KeyError: 'b'"
    opened = bench.data("trace", function="opened")["passing"]
    assert {each["outcome"] for each in opened} == {"returned", "raised"}


def test_names_of_functions(open_bench: Open, shop: Path) -> None:
    bench = open_bench(tools=TOOLS)
    for function, said in {
        "missing": "no function missing in the workspace",
        "no_such.py:total": "no_such.py",
        "__init__": "__init__ exists in several places: cart.py:5 (Cart.__init__), shop.py:5",
        "shop.py:": "name a function",
        "shop.Basket": "Basket.__init__ shop.py:5-6: 2 calls in 4 failing tests",
        "collect": "collect cart.py:26-30: not called in 4 failing tests",
    }.items():
        assert said in bench.text("trace", function=function)


def test_other_runners(open_bench: Open, project: Path) -> None:
    files = {
        "shop.py": SHOP,
        "test_unit.py": "import unittest\nfrom shop import Basket\n\nclass Case(unittest.TestCase):\n"
        "    def test_a(self):\n        self.assertEqual(Basket([4]).total(1), 3)\n"
        "    def test_b(self):\n        self.assertEqual(Basket([4]).total(), 4)\n",
        "check.py": "from shop import Basket\nassert Basket([4]).total(1) == 3\n",
        "runtests.py": "import sys, pytest\nsys.exit(pytest.main(['-q', 'test_unit.py']))\n",
    }
    write_files(project, files)
    for entrypoint, first in {
        "-m unittest test_unit": ("test_unit.Case.test_a", 1, 1),
        "check.py": ("check.py", 1, 0),
        "runtests.py": ("test_unit.py::Case::test_a", 1, 1),
    }.items():
        bench = open_bench(tools=TOOLS, entrypoint=("python", *entrypoint.split()))
        data = bench.data("trace", function="Basket.total")
        assert (data["failing"][0]["test"], data["failed"], data["passed"]) == first
    bench = open_bench(tools=TOOLS, entrypoint=("sh", "-c", "exit 1"))
    assert bench.failure("trace", function="Basket.total") is not None


def call(arguments: dict[str, str], lines: list[int], value: str) -> TracedCall:
    counts: Any = {"number": 1, "count": 1, "skipped": 0, "yielded": 0}
    steps: Any = [(line, {}, "") for line in lines]
    return TracedCall(
        arguments=arguments, caller=None, steps=steps, outcome="returned", value=value, yields=[], **counts
    )


def test_the_nearest_passing_call() -> None:
    failing = call({"a": "1", "b": "2"}, [1, 2, 3], "x")
    far = call({"a": "0", "b": "0"}, [1, 4], "y")
    near = call({"a": "0", "b": "2"}, [1, 2, 4], "y")
    same = call({"a": "1", "b": "2"}, [1, 4], "y")
    first: Any = compare(failing, [far, near], ["", "", ""])
    second: Any = compare(failing, [far, near, same], ["", "", ""])
    assert (first.passing, first.branch.line, first.branch.failing, first.branch.passing) == (1, 2, "line 3", "line 4")
    assert (second.passing, second.arguments, second.result) == (2, {}, ("returned x", "returned y"))
    assert compare(failing, [failing], []) is None


def test_no_branch_leads_over_steps_that_were_left_out_and_what_is_not_shown_is_no_difference() -> None:
    cut = call({}, [*range(1, FIRST_STEPS + 1), 900, 901], "x").model_copy(update={"skipped": 5})
    branches = summarize([cut], [call({}, [1], "x")]).branches.failing
    assert branches == [(line, line + 1) for line in range(1, FIRST_STEPS)]
    one, other = call({}, [1], "x"), call({}, [1], "<Big, not shown 1>")
    half = one.model_copy(update={"yields": ["1", "<Big, not shown 2>"], "yielded": 2})
    assert summarize([one], [other, half]).results == (["returned x"], [])
    assert [found and found.result for found in (compare(one, [each], [""]) for each in (other, half))] == [None] * 2


def test_equal_calls_of_several_tests_are_one() -> None:
    one = call({"a": "1"}, [1, 2], "x")
    calls = [one.model_copy(update={"test": name}) for name in "abca"]
    (merged, other) = merge([*calls, call({"a": "2"}, [1, 2], "x")])
    assert (merged.test, merged.also, other.also) == ("a", ["b", "c"], [])

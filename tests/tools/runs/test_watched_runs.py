"""What the scripts behind suspects and trace see of a test run, however it fails, and however long its code takes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from gumshoe.tools.runs.trace_comparison import compare, summarize
from gumshoe.tools.runs.traced_calls import Trace, is_hidden, read_trace
from support.tools.inside import program, record
from support.tools.tool_bench import Bench


def test_what_runs_after_the_failure_and_for_its_report_does_not_count(bench: Bench) -> None:
    bench.workspace.write_text(
        "shop.py",
        "class Price:\n    def __init__(self, cents):\n        self.cents = cents\n\n"
        "    def __repr__(self):\n        return shown(self)\n\n"
        "    def __enter__(self):\n        return self\n\n"
        "    def __exit__(self, *error):\n        self.cents = 0\n\n"
        "def shown(price):\n    return str(price.cents)\n\ndef half(price):\n    return Price(price.cents // 3)\n",
    )
    bench.workspace.write_text(
        "test_cart.py",
        "import pytest\nfrom shop import Price, half, shown\n\n"
        "@pytest.fixture\ndef price():\n    price = Price(10)\n    yield price\n    shown(price)\n\n"
        "def test_half(price):\n    with price:\n        assert half(price) == Price(5)\n",
    )
    names = [suspect["function"] for suspect in bench.data("suspects", formula="ochiai")["suspects"]]
    assert sorted(names) == ["Price.__enter__", "Price.__init__", "half"]


def test_a_line_of_a_comprehension_counts_once_a_test_and_a_tracer_of_the_program_ends_its_own(bench: Bench) -> None:
    bench.workspace.write_text("shop.py", "def doubled(numbers):\n    return [number * 3 for number in numbers]\n")
    bench.workspace.write_text(
        "test_cart.py",
        "import sys, threading\nfrom cart import Cart, numbers\nfrom shop import doubled\n\n"
        "def test_bad():\n    thread = threading.Thread(target=Cart.price, args=(1,))\n"
        "    thread.start()\n    thread.join()\n    assert doubled([1, 2]) == [2, 4]\n\n"
        "def test_good():\n    assert doubled([0]) == [0]\n\n"
        "def test_own_tracer():\n    sys.settrace(lambda *_: None)\n    list(numbers(1))\n",
    )
    assert bench.lines("suspects", formula="ochiai")[1:-1] == [
        "8-12 cart.py Cart.price 1.00",
        "1-2 shop.py doubled 0.71",
    ]


FOLLOWED = """
import asyncio, json, weakref

MISSING = KeyError("missing")

class Point:
    def __init__(self, x):
        self.x = x
    def __eq__(self, other):
        return self.x == other.x
    def __repr__(self):
        return "Point"

def look(items, key):
    if key not in items:
        raise MISSING
    return items[key]

def get(items, key):
    try:
        return look(items, key)
    except KeyError:
        return None

def rename(items, old, new):
    wanted = new
    return look(items, wanted)

def parsed(text):
    try:
        return json.loads(text)
    except ValueError:
        return None

def cleaned(text):
    text = text.replace("1", "x")
    return json.loads(text)

def collected(texts):
    for text in texts:
        try:
            int(text)
        except ValueError as error:
            found = error
    checked = len(texts)
    raise found

def counted():
    number = 0
    while True:
        number += 1
        yield number

COUNTER = counted()

class Registry:
    def __init__(self):
        self.known = weakref.WeakKeyDictionary()
    def number(self, item):
        try:
            return self.known[item]
        except KeyError:
            pass
        self.known[item] = len(self.known)
        return self.known[item]

async def price(item):
    await asyncio.sleep(0)
    await ready()
    return item * 2

async def ready():
    return sum([x async for x in numbers()])

async def numbers():
    yield 1

def parts():
    found = yield from inner()
    yield found

def inner():
    yield 1
    return 2
"""
FOLLOWED_TESTS = """
import asyncio, unittest
from followed import *

async def both(item):
    return await asyncio.gather(price(item), price(item))

def run(item):
    return asyncio.new_event_loop().run_until_complete(both(item))

class Tests(unittest.TestCase):
    def test_1_first(self):
        self.assertEqual(next(COUNTER), 1)
    def test_2_resumed(self):
        self.assertEqual(next(COUNTER), 7)
    def test_again(self):
        self.assertIsNone(get({}, "a"))
        rename({"a": 1}, "a", "b")
    def test_another(self):
        self.assertIsNone(parsed("{"))
        cleaned('{"a": 1}')
    def test_later(self):
        collected(["1", "x"])
    def test_message(self):
        self.assertEqual(Point(1), Point(2))
    @unittest.expectedFailure
    def test_expected(self):
        self.assertEqual(len(Point(1)), 1)
    def test_left(self):
        get({"a": 1}, "a")
        self.skipTest("no")
    def test_weak(self):
        registry = Registry()
        for _ in range(5):
            registry.number(Registry())
            assert not registry.known
    def test_delegates(self):
        self.assertEqual(list(parts()), [1, 2])
    def test_awaits(self):
        self.assertEqual(run(1), [2, 2])
    def test_awaits_and_fails(self):
        self.assertEqual(run(1), [2, 3])
"""


def test_what_ran_before_the_last_raise_counts_and_tests_run_as_elsewhere(python: str, project: Path) -> None:
    (project / "followed.py").write_text(FOLLOWED)
    (project / "test_followed.py").write_text(FOLLOWED_TESTS)
    request = project / "request.json"
    request.write_text(json.dumps({"record": str(project / "lines.json")}))
    argv = [python, *program("runs.suspects"), "--", "-m", "unittest", "test_followed"]
    environment = {**os.environ, "GUMSHOE_SUSPECTS": str(request)}
    subprocess.run(argv, cwd=project, env=environment, check=False, capture_output=True, timeout=240)
    written = json.loads((project / "lines.json").read_text())
    assert (written["failed"], written["passed"], list(written["lines"])) == (6, 4, ["followed.py"])
    code = FOLLOWED.splitlines()
    ran = {code[int(line) - 1].strip(): counts for line, counts in written["lines"]["followed.py"].items()}
    assert ran["wanted = new"] == [1, 0]
    assert ran['text = text.replace("1", "x")'] == [1, 0]
    assert ran["checked = len(texts)"] == ran["raise found"] == [1, 0]
    assert ran["number += 1"] == [1, 1]
    assert ran["return look(items, key)"] == [1, 0]
    for line in (
        "await asyncio.sleep(0)",
        "await ready()",
        "return item * 2",
        "return sum([x async for x in numbers()])",
    ):
        assert ran[line] == [1, 1]
    assert not {'return "Point"', "found = yield from inner()", "return self.known[item]"} & set(ran)


def test_a_test_goes_on_after_its_subtests(open_bench: Callable[..., Bench], project: Path) -> None:
    (project / "test_cart.py").write_text(
        "import unittest\nfrom cart import Cart, collect\n\n"
        "class Tests(unittest.TestCase):\n    def test_both(self):\n"
        "        with self.subTest():\n            Cart.price(1)\n"
        "        with self.subTest():\n            Cart.price(2)\n"
        "        self.assertEqual(collect(), [1, 2])\n\n"
        "def test_fixture(subtests):\n"
        "    with subtests.test():\n        Cart.price(1)\n"
        "    assert collect() == [0, 1]\n"
    )
    bench = open_bench(tools=("suspects", "trace"))
    assert "cart.py collect" in bench.text("suspects")
    assert "returned [0, 1]" in bench.text("trace", function="collect")


SLOW = """\
import time

class Endless:
    def __repr__(self):
        while True:
            pass

class Stubborn:
    caught = 0
    def __repr__(self):
        while self.caught < 3:
            try:
                while True:
                    pass
            except BaseException:
                self.caught += 1
        return "done"

class Sleeping:
    def __repr__(self):
        time.sleep(30)

class Other:
    def __repr__(self):
        return "other"

def half(n, slow, both, other):
    return n / 2
"""
TEST_SLOW = """\
import pytest, signal
from shop import Endless, Other, Sleeping, Stubborn, half

@pytest.mark.parametrize("kind", [Endless, Stubborn, Sleeping])
def test_half(kind):
    before = signal.getsignal(signal.SIGALRM)
    for n in range(3):
        half(n, kind(), [kind(), n], Other())
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
"""


def traced(python: str, project: Path, name: str, shop: str, tests: str) -> Trace:
    """What the script behind `trace` writes about a function of shop.py."""
    (project / "shop.py").write_text(shop)
    (project / "test_cart.py").write_text(tests)
    line = next(number for number, text in enumerate(shop.split("\n"), start=1) if f"def {name}(" in text)
    return read_trace(record(python, project, project.parent, name, line))


def test_an_endless_call_is_shown_as_far_as_it_went(project: Path) -> None:
    shop = (
        "import os, signal\n\n\ndef spin(n):\n    while n:\n        n += 1\n"
        "        if n == 1000:\n            os.kill(os.getpid(), signal.SIGUSR2)\n"
    )
    tests = "from shop import spin\n\ndef test_spin():\n    spin(0)\n    spin(1)\n"
    trace = traced(sys.executable, project, "spin", shop, tests)
    assert (trace.failed, trace.passed, trace.unfinished) == (1, 0, True)
    first, call = trace.failing
    assert (first.outcome, call.number, call.arguments, call.outcome) == ("returned", 2, {"n": "1"}, "unfinished")
    assert call.skipped > 2000


def test_objects_that_take_long_to_print_are_not_printed_again_and_again(project: Path) -> None:
    shop = (
        "import time\n\n\nclass Big:\n    def __repr__(self):\n        time.sleep(0.1)\n"
        "        open('printed', 'a').write('x')\n        return 'Big()'\n\n\n"
        "def half(n, big):\n    return big if n == 7 else n / 2\n"
    )
    tests = (
        "import pytest\nfrom shop import Big, half\n\n\n@pytest.mark.parametrize('last', [300, 301])\n"
        "def test_half(last):\n    big = Big()\n    for n in range(last):\n        half(n, big)\n"
        "    assert last == 300\n"
    )
    trace = traced(sys.executable, project, "half", shop, tests)
    assert 2 <= len((project / "printed").read_text()) < 20
    assert (trace.failed, trace.passed, trace.failing_calls, trace.passing_calls) == (1, 1, 301, 300)
    assert trace.failing[0].arguments == {"n": "0", "big": "Big()"}
    latest = max(trace.failing, key=lambda call: call.number)
    assert (latest.arguments["n"], latest.result) == ("300", "returned 150.0")
    assert latest.arguments["big"].startswith("<Big, not shown ")
    known = summarize(trace.failing, trace.passing)
    assert "big" not in known.arguments
    assert not [result for result in (*known.results[0], *known.results[1]) if "not shown" in result]
    found = compare(latest, trace.passing, [""] * 12)
    assert found is not None
    assert "big" in found.arguments  # Nobody knows whether it is the same.


def test_objects_that_are_slow_to_print_are_interrupted_and_do_not_cost_the_others(project: Path) -> None:
    began = time.monotonic()
    trace = traced(sys.executable, project, "half", SLOW, TEST_SLOW)
    assert time.monotonic() - began < 25
    assert (trace.failed, trace.passed) == (0, 3)
    kinds = [name for name in ("Endless", "Stubborn", "Sleeping") for _ in range(3)]
    for kind, n, call in zip(kinds, [0, 1, 2] * 3, trace.passing, strict=True):
        slow = f"<{kind}, not shown: too slow>"
        assert is_hidden(call.arguments.pop("slow"))
        assert call.arguments == {"n": str(n), "both": f"[{slow}, {n}]", "other": "other"}


def test_calls_in_a_tear_down_are_seen_and_objects_with_slots_are_shown(project: Path) -> None:
    shop = (
        "class Base:\n    __slots__ = ('number', 'unset')\n\n"
        "    def __init__(self, number):\n        self.number = number\n\n\n"
        "class Store(Base):\n    __slots__ = ('number', '__dict__')\n\n"
        "    def close(self):\n        return 1 / self.number\n"
    )
    tests = (
        "import pytest\nfrom shop import Store\n\n@pytest.fixture\ndef store():\n"
        "    opened = Store(0)\n    opened.name = 'a'\n    yield opened\n    opened.close()\n\n"
        "def test_store(store):\n    pass\n"
    )
    trace = traced(sys.executable, project, "close", shop, tests)
    (call,) = trace.failing
    assert (trace.failed, call.arguments, call.outcome) == (1, {"self.number": "0", "self.name": "'a'"}, "raised")


def test_it_is_said_where_a_recursion_that_is_too_deep_ends_tracing(python: str, project: Path) -> None:
    """From Python 3.12 on, nothing is lost."""
    shop = "def again(n):\n    return again(n + 1)\n\n\ndef half(n):\n    return n / 2\n"
    tests = (
        "import pytest\nfrom shop import again, half\n\n\ndef test_deep():\n    half(1)\n"
        "    with pytest.raises(RecursionError):\n        again(0)\n    half(2)\n\n\ndef test_half():\n    half(3)\n"
    )
    trace = traced(python, project, "half", shop, tests)
    calls = sum(call.arguments["n"] == "2" for call in trace.passing)
    assert (trace.passed, trace.passing_calls) == (2, 2 + calls)
    assert trace.lost == ([] if calls else ["test_cart.py::test_deep"])

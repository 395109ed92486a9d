"""suspects: what counts as run by a test: nothing after its failure, everything before, and it runs as elsewhere."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.tools.inside import program
from support.tools.tool_bench import Bench


def spectrum_of(python: str, project: Path, module: str) -> Any:
    """What the script behind `suspects` writes of the tests of a module."""
    request = project / "request.json"
    request.write_text(json.dumps({"record": str(project / "lines.json")}))
    argv = [python, *program("runs.suspects"), "--", "-m", "unittest", module]
    environment = {**os.environ, "GUMSHOE_SUSPECTS": str(request)}
    subprocess.run(argv, cwd=project, env=environment, check=False, capture_output=True, timeout=240)
    return json.loads((project / "lines.json").read_text())


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
    observation = bench.call("suspects", formula="ochiai")
    names = [suspect["function"] for suspect in observation.data["suspects"]]  # type: ignore[index,union-attr]
    assert sorted(names) == ["Price.__enter__", "Price.__init__", "half"]


def test_a_line_of_a_comprehension_counts_once_a_test(bench: Bench) -> None:
    bench.workspace.write_text("shop.py", "def doubled(numbers):\n    return [number * 3 for number in numbers]\n")
    bench.workspace.write_text(
        "test_cart.py",
        "from shop import doubled\n\ndef test_bad():\n    assert doubled([1, 2]) == [2, 4]\n\n"
        "def test_good():\n    assert doubled([0]) == [0]\n",
    )
    assert bench.call("suspects", formula="ochiai").data["suspects"][0]["score"] == 0.7071  # type: ignore[index,call-overload]


def test_threads_and_a_tracer_of_the_program(bench: Bench) -> None:
    bench.workspace.write_text(
        "test_cart.py",
        "import sys, threading\nfrom cart import Cart, numbers\n\n"
        "def test_bad():\n    thread = threading.Thread(target=Cart.price, args=(1,))\n"
        "    thread.start()\n    thread.join()\n    assert False\n\n"
        "def test_own_tracer():\n    sys.settrace(lambda *_: None)\n    list(numbers(1))\n",
    )
    assert bench.text("suspects", formula="ochiai").splitlines()[1:-1] == ["8-12 cart.py Cart.price 1.00"]


REGISTRY = """
import weakref

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
"""


def test_a_test_of_weak_references_passes_as_it_does_elsewhere(python: str, project: Path) -> None:
    (project / "registry.py").write_text(REGISTRY)
    (project / "test_cart.py").write_text(
        "import unittest\nimport registry\nfrom cart import Cart\n\n"
        "class Item:\n    pass\n\n"
        "class Tests(unittest.TestCase):\n"
        "    def test_gone(self):\n        known = registry.Registry()\n"
        "        for _ in range(5):\n            known.number(Item())\n            assert not known.known\n\n"
        "    def test_bad(self):\n        assert Cart.price(1) == 3\n"
    )
    written = spectrum_of(python, project, "test_cart")
    assert (written["failed"], written["passed"], list(written["lines"])) == (1, 1, ["cart.py"])


RAISED = """
import json

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

def numbers():
    number = 0
    while True:
        number += 1
        yield number

COUNTER = numbers()
"""
RAISING_TESTS = """
import unittest
from raised import *

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
"""


def test_what_ran_before_the_last_raise_counts_and_other_tests_do_not(python: str, project: Path) -> None:
    (project / "raised.py").write_text(RAISED)
    (project / "test_raised.py").write_text(RAISING_TESTS)
    written = spectrum_of(python, project, "test_raised")
    assert (written["failed"], written["passed"]) == (5, 1)
    code = RAISED.splitlines()
    ran = {code[int(line) - 1].strip(): counts for line, counts in written["lines"]["raised.py"].items()}
    assert ran["wanted = new"] == [1, 0]
    assert ran['text = text.replace("1", "x")'] == [1, 0]
    assert ran["checked = len(texts)"] == ran["raise found"] == [1, 0]
    assert ran["number += 1"] == [1, 1]
    assert ran["return look(items, key)"] == [1, 0]
    assert 'return "Point"' not in ran


FLOWS = """
import asyncio

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


def test_what_awaits_and_delegates_runs_as_it_does_elsewhere(python: str, project: Path) -> None:
    (project / "flows.py").write_text(FLOWS)
    (project / "test_flows.py").write_text(
        "import asyncio, unittest\nimport flows\n\n"
        "async def both(item):\n    return await asyncio.gather(flows.price(item), flows.price(item))\n\n"
        "def run(item):\n    loop = asyncio.new_event_loop()\n"
        "    try:\n        return loop.run_until_complete(both(item))\n    finally:\n        loop.close()\n\n"
        "class Tests(unittest.TestCase):\n"
        "    def test_good(self):\n        self.assertEqual(list(flows.parts()), [1, 2])\n"
        "    def test_bad(self):\n        self.assertEqual(run(1), [2, 3])\n"
        "    def test_also_good(self):\n        self.assertEqual(run(1), [2, 2])\n"
    )
    written = spectrum_of(python, project, "test_flows")
    assert (written["failed"], written["passed"]) == (1, 2)
    assert set(written["lines"]["flows.py"]) == {"5", "6", "7", "10", "13"}


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

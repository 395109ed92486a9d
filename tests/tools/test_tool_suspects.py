"""suspects: which functions failing tests run."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gumshoe.tools.code.functions import Span
from gumshoe.tools.evidence.facts import all_facts
from gumshoe.tools.ranking.spectrum import FORMULAS, Spectrum, barinel, dstar, ochiai, rank, tarantula
from support.tools.tool_bench import Bench, Open


def test_suspects(bench: Bench) -> None:
    observation = bench.call("suspects", formula="ochiai")
    assert observation.text.splitlines() == [
        "3 functions run by 1 failing test, most suspicious first",
        "8-12 cart.py Cart.price 1.00",
        "14-18 cart.py Cart.total 1.00",
        "5-6 cart.py Cart.__init__ 1.00",
        'To view the first: {"start": 8, "end": 12, "path": "cart.py"}',
    ]
    data: Any = observation.data
    assert [data[name] for name in ("failed", "passed", "formula")] == [1, 1, "ochiai"]
    assert data["suspects"][0] == {
        "path": "cart.py",
        "function": "Cart.price",
        "start": 8,
        "end": 12,
        "score": 1.0,
        "lines": [11, 12],
        "distance": 0,
        "signals": {},
    }
    assert "one of ranker, ochiai, dstar, tarantula, barinel" in bench.text("suspects", formula="magic")


def test_a_test_that_fails_in_its_tear_down(bench: Bench) -> None:
    bench.workspace.write_text("store.py", "def close(number):\n    return 1 / number\n")
    bench.workspace.write_text(
        "test_cart.py",
        "import pytest\nfrom store import close\n\n"
        "@pytest.fixture(params=[0, 2])\ndef number(request):\n    yield request.param\n    close(request.param)\n\n"
        "def test_number(number):\n    pass\n",
    )
    assert [(one["function"], one["lines"]) for one in bench.data("suspects")["suspects"]] == [("close", [2])]


def test_without_suspects_it_says_why(bench: Bench) -> None:
    for tests, answer in (
        ("def test_fine():\n    pass\n", "No test fails."),
        ("import no_such_module\n", "No test was followed to its failure: use eval."),
        ("def test_bad():\n    assert 1 == 2\n", "No function of the project is run by 1 failing test."),
    ):
        bench.workspace.write_text("test_cart.py", tests)
        assert bench.text("suspects") == answer


@pytest.mark.parametrize("entrypoint", [("python", "-c", "raise SystemExit(1)"), ("sh", "-c", "exit 1")])
def test_programs_without_tests(open_bench: Open, entrypoint: tuple[str, ...]) -> None:
    said = "error: The tests could not be followed: neither pytest nor unittest runs them in one process"
    assert open_bench(entrypoint=entrypoint).text("suspects").startswith(said)


UNIT = """import unittest
from cart import Cart, collect, numbers

class Case(unittest.TestCase):
    def setUp(self):
        list(numbers(1))

    def test_bad(self):
        self.assertEqual(Cart.price(1), 3)

    def test_after(self):
        try:
            self.assertEqual(len(list(numbers(2))), 3)
        finally:
            collect()

    def test_good(self):
        for count in (1, 2):
            with self.subTest(count=count):
                self.assertEqual(len(list(numbers(count))), count)

    @unittest.expectedFailure
    def test_expected(self):
        self.assertEqual(Cart.price(1), 4)
"""


@pytest.mark.parametrize("runner", ["-m unittest -q test_unit", "runtests.py", "runpytest.py"])
def test_other_runners(open_bench: Open, project: Path, runner: str) -> None:
    (project / "test_unit.py").write_text(UNIT)
    (project / "runtests.py").write_text("import unittest\nunittest.main(module='test_unit')\n")
    (project / "runpytest.py").write_text("import sys, pytest\nsys.exit(pytest.main(['-q', 'test_unit.py']))\n")
    observation = open_bench(entrypoint=("python", *runner.split())).call("suspects", formula="ochiai")
    assert (observation.data["failed"], observation.data["passed"]) == (2, 1)
    assert observation.text.splitlines()[1:-1] == ["21-23 cart.py numbers 0.82", "8-12 cart.py Cart.price 0.71"]


@pytest.mark.parametrize("runner", ["pytest", "unittest"])
def test_a_test_that_never_ends_is_one_that_fails(open_bench: Open, project: Path, runner: str) -> None:
    (project / "loops.py").write_text(
        "import time\n\ndef wait(n):\n    while n:\n        n += step(n)\n\n"
        "def step(n):\n    time.sleep(0.01)\n    return 1\n"
    )
    (project / "test_loops.py").write_text(
        "import unittest\nimport loops\n\nclass Loops(unittest.TestCase):\n"
        "    def test_step(self):\n        loops.step(1)\n\n    def test_wait(self):\n        loops.wait(1)\n"
    )
    entrypoint = ("python", "-m", runner, "test_loops.py")
    observation = open_bench(entrypoint=entrypoint, timeout=7.0).call("suspects", formula="ochiai")
    assert [observation.data[name] for name in ("failed", "running", "passed")] == [1, 1, 1]
    assert observation.text.splitlines()[:3] == [
        "2 functions run by 1 failing test (1 did not end), most suspicious first",
        "3-5 loops.py wait 1.00",
        "7-9 loops.py step 0.71",
    ]


def test_hidden_files_stay_hidden(open_bench: Open) -> None:
    assert "No function" in open_bench(ignore=("cart.py",)).text("suspects")


def test_formulas_by_hand() -> None:
    assert [formula(0, 3, 2, 5) for formula in FORMULAS.values()] == [0.0] * 4
    assert [ochiai(2, 0, 2, 5), ochiai(1, 3, 4, 5)] == pytest.approx([1.0, 1 / 4])
    assert [dstar(3, 2, 4, 9), dstar(2, 0, 2, 5), dstar(2, 1, 2, 5)] == pytest.approx([9 / 3, 8.0, 4.0])
    assert [tarantula(1, 1, 2, 4), tarantula(1, 0, 1, 0)] == pytest.approx([0.5 / 0.75, 1.0])
    assert barinel(2, 6, 2, 9) == pytest.approx(0.25)


@pytest.mark.parametrize("name", FORMULAS)
@given(st.integers(0, 50), st.integers(0, 50), st.integers(1, 50))
def test_scores_are_finite_and_fall_with_passing_tests(name: str, failing: int, passing: int, failed: int) -> None:
    failing = min(failing, failed)
    score = FORMULAS[name](failing, passing, failed, passing + 1)
    assert 0 <= score < math.inf
    assert FORMULAS[name](failing, passing + 1, failed, passing + 1) <= score + 1e-9


def test_the_likeliest_come_first_with_what_speaks_for_them(bench: Bench) -> None:
    bench.workspace.write_text("prices.py", "def tax(amount):\n    return amount * 2\n\ndef other(n):\n    return 0\n")
    bench.workspace.write_text(
        "test_cart.py",
        "from cart import numbers\nfrom prices import tax\n\n"
        "def test_tax():\n    list(numbers(1))\n    assert tax(1) == 3\n\n"
        "def test_rate():\n    assert tax(1, rate=2) == 3\n",
    )
    observation = bench.call("suspects")
    found: Any = observation.data["suspects"]
    assert (found[0]["function"], found[0]["signals"]["test_name"]) == ("tax", 1.0)
    assert observation.text.splitlines()[1].endswith("(refused the call, named in the message)")
    scores = [one["score"] for one in found]
    assert scores == sorted(scores, reverse=True)
    assert 0.8 < sum(scores) < 1


def test_a_function_that_refuses_every_call_is_a_suspect(bench: Bench) -> None:
    refused = "from prices import Price\n\ndef test_currency():\n    assert Price(1, currency='EUR').amount == 1\n"
    bench.workspace.write_text("prices.py", "class Price:\n    def __init__(self, amount):\n        self.amount = 1\n")
    bench.workspace.write_text("test_cart.py", refused)
    observation = bench.call("suspects")
    found: Any = observation.data["suspects"]
    assert (found[0]["function"], found[0]["lines"], found[0]["signals"]["refused"]) == ("Price.__init__", [], 1.0)
    assert not all_facts([observation])


def ranked(lines: Sequence[int], distances: Mapping[int, int], *spans: Span) -> list[str]:
    ran: Any = {"a.py": dict.fromkeys(lines, (1, 0))}
    spectrum = Spectrum(failed=1, passed=0, lines=ran, distances={"a.py": dict(distances)})
    return [suspect.span.name for suspect in rank(spectrum, {"a.py": spans})]


def test_lines_belong_to_the_innermost_function_and_ties_go_to_the_nearest_then_to_more_lines() -> None:
    spans = [Span("one", 1, 2), Span("two", 4, 5), Span("three", 7, 9)]
    assert ranked([2, 5, 8, 9], {1: 2, 4: 1}, *spans) == ["two", "one", "three"]
    assert ranked([2, 5, 8, 9], {}, *spans)[0] == "three"
    assert ranked([3, 9], {}, Span("outer", 1, 6), Span("outer.inner", 2, 4)) == ["outer.inner"]


@pytest.mark.parametrize("runner", [("-m", "pytest", "-q"), ("-m", "unittest", "-v", "test_cart")])
def test_tests_have_the_outcomes_that_eval_shows(open_bench: Open, project: Path, runner: tuple[str, ...]) -> None:
    """One looks for a trace function; one passes although it was expected to fail, which is no passing test."""
    (project / "test_cart.py").write_text(
        "import sys, unittest\nfrom cart import collect\n\nclass Case(unittest.TestCase):\n"
        "    def test_trace(self):\n        assert sys.gettrace() is None\n        collect()\n"
        "        sys.settrace(None)\n        assert sys.gettrace() is None\n\n"
        "    def test_fails(self):\n        collect().nothing\n\n"
        "    @unittest.expectedFailure\n    def test_surprise(self):\n        collect()\n"
    )
    bench = open_bench(entrypoint=("python", *runner), tools=("eval", "suspects", "trace"))
    counts: Any = bench.call("eval").data["counts"]
    failing = counts.get("failed", 0) + counts.get("error", 0)
    for observation in (bench.call("suspects"), bench.call("trace", function="collect")):
        assert (observation.data["failed"], observation.data["passed"]) == (failing, counts["passed"])

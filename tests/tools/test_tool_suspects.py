"""suspects: which functions failing tests run."""

from __future__ import annotations

import json
import math
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gumshoe.tools.code.functions import Span
from gumshoe.tools.evidence.facts import all_facts
from gumshoe.tools.ranking.signals import Index, words
from gumshoe.tools.ranking.spectrum import FORMULAS, Spectrum, barinel, dstar, ochiai, rank, tarantula
from support.tools.inside import SUPPORT
from support.tools.tool_bench import Bench

Open = Callable[..., Bench]


def test_suspects(open_bench: Open) -> None:
    observation = open_bench().call("suspects", formula="ochiai")
    assert observation.text.splitlines() == [
        "3 functions run by 1 failing test, most suspicious first",
        "8-12 cart.py Cart.price 1.00",
        "14-18 cart.py Cart.total 1.00",
        "5-6 cart.py Cart.__init__ 1.00",
        'To view the first: {"start": 8, "end": 12, "path": "cart.py"}',
    ]
    assert observation.data["failed"] == 1
    assert observation.data["passed"] == 1
    assert observation.data["suspects"][0] == {  # type: ignore[index]
        "path": "cart.py",
        "function": "Cart.price",
        "start": 8,
        "end": 12,
        "score": 1.0,
        "lines": [11, 12],
        "distance": 0,
        "signals": {},
    }


def test_what_passing_tests_run_too_is_less_suspicious(bench: Bench) -> None:
    bench.workspace.write_text(
        "test_cart.py",
        "import pytest\nfrom cart import Cart, collect, numbers\n\n"
        "def test_bad():\n    collect()\n    assert Cart.price(1) == 3\n\n"
        "@pytest.mark.parametrize('count', [1, 2, 3])\ndef test_good(count):\n"
        "    assert len(list(numbers(count))) == count\n",
    )
    assert bench.text("suspects", formula="ochiai").splitlines()[1:-1] == [
        "26-30 cart.py collect 1.00",
        "8-12 cart.py Cart.price 1.00",
        "21-23 cart.py numbers 0.50",
    ]


def test_a_test_that_fails_in_its_tear_down(bench: Bench) -> None:
    bench.workspace.write_text("store.py", "def close(number):\n    return 1 / number\n")
    bench.workspace.write_text(
        "test_cart.py",
        "import pytest\nfrom store import close\n\n"
        "@pytest.fixture(params=[0, 2])\ndef number(request):\n    yield request.param\n    close(request.param)\n\n"
        "def test_number(number):\n    pass\n",
    )
    data: Any = bench.call("suspects").data
    assert [(one["function"], one["lines"]) for one in data["suspects"]] == [("close", [2])], data


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
    observation = open_bench(entrypoint=entrypoint).call("suspects")
    assert observation.failure is not None
    assert "neither pytest nor unittest runs them in one process" in observation.text


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
RUNNERS = {
    "unittest": ("-m", "unittest", "-q", "test_unit"),
    "script": ("runtests.py",),
    "pytest in a script": ("runpytest.py",),
}


@pytest.mark.parametrize("runner", RUNNERS)
def test_other_runners(open_bench: Open, project: Path, runner: str) -> None:
    (project / "test_unit.py").write_text(UNIT)
    (project / "runtests.py").write_text("import unittest\nunittest.main(module='test_unit')\n")
    (project / "runpytest.py").write_text("import sys, pytest\nsys.exit(pytest.main(['-q', 'test_unit.py']))\n")
    observation = open_bench(entrypoint=("python", *RUNNERS[runner])).call("suspects", formula="ochiai")
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
    bench = open_bench(entrypoint=("python", "-m", runner, "test_loops.py"), timeout=7.0)
    observation = bench.call("suspects", formula="ochiai")
    assert [observation.data[name] for name in ("failed", "running", "passed")] == [1, 1, 1]
    assert observation.text.splitlines()[:3] == [
        "2 functions run by 1 failing test (1 did not end), most suspicious first",
        "3-5 loops.py wait 1.00",
        "7-9 loops.py step 0.71",
    ]


def test_what_was_known_before_a_test_that_never_ends(open_bench: Open, project: Path) -> None:
    (project / "test_zz.py").write_text("import time\ndef test_hangs():\n    time.sleep(600)\n")
    observation = open_bench(timeout=6.0).call("suspects", formula="ochiai")
    assert [observation.data[name] for name in ("failed", "running", "passed")] == [2, 1, 1]
    assert "2 failing tests (1 did not end)" in observation.text
    assert "cart.py Cart.total 0.71" in observation.text


def test_hidden_files_stay_hidden(open_bench: Open) -> None:
    assert "No function" in open_bench(ignore=("cart.py",)).text("suspects")


def test_the_plugin_on_other_pythons(python: str, project: Path) -> None:
    record = project / "lines.json"
    environment = {**os.environ, "GUMSHOE_LINES": str(record), "PYTHONPATH": str(SUPPORT)}
    argv = [python, "-m", "pytest", "-q", "-p", "gumshoe_inside.runs.suspects", "-p", "no:cacheprovider"]
    subprocess.run(argv, cwd=project, env=environment, check=False, capture_output=True, timeout=240)
    written = json.loads(record.read_text())
    assert (written["failed"], written["passed"], list(written["lines"])) == (1, 1, ["cart.py"])
    assert written["lines"]["cart.py"]["17"] == [1, 0]
    assert written["distances"]["cart.py"] == {"5": 3, "8": 0, "14": 1}


def test_formulas_by_hand() -> None:
    assert [formula(0, 3, 2, 5) for formula in FORMULAS.values()] == [0.0] * 4
    assert ochiai(2, 0, 2, 5) == 1.0
    assert ochiai(1, 3, 4, 5) == pytest.approx(1 / 4)
    assert dstar(3, 2, 4, 9) == pytest.approx(9 / 3)
    assert dstar(2, 0, 2, 5) > dstar(2, 1, 2, 5)
    assert tarantula(1, 1, 2, 4) == pytest.approx(0.5 / 0.75)
    assert tarantula(1, 0, 1, 0) == 1.0
    assert barinel(2, 6, 2, 9) == pytest.approx(0.25)


@pytest.mark.parametrize("name", FORMULAS)
@given(st.integers(0, 50), st.integers(0, 50), st.integers(1, 50))
def test_scores_are_finite_and_fall_with_passing_tests(name: str, failing: int, passing: int, failed: int) -> None:
    failing = min(failing, failed)
    score = FORMULAS[name](failing, passing, failed, passing + 1)
    assert score >= 0
    assert math.isfinite(score)
    assert FORMULAS[name](failing, passing + 1, failed, passing + 1) <= score + 1e-9


def test_a_formula_is_chosen_by_name(bench: Bench) -> None:
    assert bench.call("suspects", formula="dstar").data["formula"] == "dstar"
    assert "one of ranker, ochiai, dstar, tarantula, barinel" in bench.text("suspects", formula="magic")


def test_the_likeliest_come_first_with_what_speaks_for_them(bench: Bench) -> None:
    bench.workspace.write_text(
        "prices.py", "def tax(amount):\n    return amount * 2\n\ndef other(amount):\n    return 0\n"
    )
    bench.workspace.write_text(
        "test_cart.py",
        "from cart import numbers\nfrom prices import tax\n\n"
        "def test_tax():\n    list(numbers(1))\n    assert tax(1) == 3\n\n"
        "def test_rate():\n    assert tax(1, rate=2) == 3\n",
    )
    observation = bench.call("suspects")
    found: Any = observation.data["suspects"]
    assert found[0]["function"] == "tax"
    assert observation.text.splitlines()[1].endswith("(refused the call, named in the message)")
    assert 0.8 < sum(one["score"] for one in found) < 1
    assert [one["score"] for one in found] == sorted((one["score"] for one in found), reverse=True)
    assert found[0]["signals"]["test_name"] == 1.0


def test_a_function_that_refuses_every_call_is_a_suspect(bench: Bench) -> None:
    bench.workspace.write_text(
        "prices.py", "class Price:\n    def __init__(self, amount):\n        self.amount = amount\n"
    )
    bench.workspace.write_text(
        "test_cart.py",
        "from prices import Price\n\ndef test_currency():\n    assert Price(1, currency='EUR').amount == 1\n",
    )
    observation = bench.call("suspects")
    found: Any = observation.data["suspects"]
    assert (found[0]["function"], found[0]["lines"], found[0]["signals"]["refused"]) == ("Price.__init__", [], 1.0)
    assert not all_facts([observation])


def test_words_are_the_parts_of_identifiers() -> None:
    assert words("parseHTTP_url(self, x2)") == ["parse", "http", "url"]
    index = Index([["parse", "url"], ["parse", "parse"], ["print"]])
    assert index.scores(["url", "unknown"])[0] > 0.0
    assert index.scores(["url"])[1:] == [0.0, 0.0]
    assert index.scores(["parse"])[1] > index.scores(["parse"])[0] > index.scores(["parse"])[2] == 0.0
    assert Index([]).scores(["url"]) == []


def test_ties_go_to_the_nearest_then_to_more_suspicious_lines() -> None:
    spectrum = Spectrum(
        failed=1,
        passed=0,
        lines={"a.py": {2: (1, 0), 5: (1, 0), 8: (1, 0), 9: (1, 0)}},
        distances={"a.py": {1: 2, 4: 1}},
    )
    spans = [Span("one", 1, 2), Span("two", 4, 5), Span("three", 7, 9)]
    assert [suspect.span.name for suspect in rank(spectrum, {"a.py": spans})] == ["two", "one", "three"]
    spectrum = spectrum.model_copy(update={"distances": {}})
    assert rank(spectrum, {"a.py": spans})[0].span.name == "three"


def test_lines_belong_to_the_innermost_function() -> None:
    spectrum = Spectrum(failed=1, passed=0, lines={"a.py": {3: (1, 0), 9: (1, 0)}})
    ranked = rank(spectrum, {"a.py": [Span("outer", 1, 6), Span("outer.inner", 2, 4)]})
    assert [suspect.span.name for suspect in ranked] == ["outer.inner"]


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

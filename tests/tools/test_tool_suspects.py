"""suspects: which functions failing tests run."""

from __future__ import annotations

import json
import math
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tool_bench import Bench

from gumshoe.tools.spans import Span
from gumshoe.tools.suspects import Spectrum, ochiai, rank

Open = Callable[..., Bench]
INSIDE = Path(__file__).parents[2] / "tools" / "inside"


def test_suspects_on_every_backend(open_bench: Open, backend: str) -> None:
    observation = open_bench(backend).call("suspects")
    assert observation.text.splitlines() == [
        "3 functions run by 1 failing test, most suspicious first",
        "14-18 cart.py Cart.total 1.00",
        "8-12 cart.py Cart.price 1.00",
        "5-6 cart.py Cart.__init__ 1.00",
        'To view the first: {"start": 14, "end": 18, "path": "cart.py"}',
    ]
    assert observation.data["failed"] == 1
    assert observation.data["passed"] == 1
    assert observation.data["suspects"][0] == {  # type: ignore[index]
        "path": "cart.py",
        "function": "Cart.total",
        "start": 14,
        "end": 18,
        "score": 1.0,
        "lines": [15, 16, 17],
    }


def test_what_passing_tests_run_too_is_less_suspicious(bench: Bench) -> None:
    bench.workspace.write_text(
        "test_cart.py",
        "import pytest\nfrom cart import Cart, collect, numbers\n\n"
        "def test_bad():\n    collect()\n    assert Cart.price(1) == 3\n\n"
        "@pytest.mark.parametrize('count', [1, 2, 3])\ndef test_good(count):\n"
        "    assert len(list(numbers(count))) == count\n",
    )
    assert bench.text("suspects").splitlines()[1:-1] == [
        "26-30 cart.py collect 1.00",
        "8-12 cart.py Cart.price 1.00",
        "21-23 cart.py numbers 0.50",
    ]


def test_no_failing_test(bench: Bench) -> None:
    bench.workspace.write_text("test_cart.py", "def test_fine():\n    pass\n")
    assert bench.text("suspects") == "No test fails."


def test_tests_that_cannot_be_collected(bench: Bench) -> None:
    bench.workspace.write_text("test_cart.py", "import no_such_module\n")
    assert bench.text("suspects") == "No test was followed to its failure: use eval."


def test_a_failing_test_that_runs_nothing_of_the_project(bench: Bench) -> None:
    bench.workspace.write_text("test_cart.py", "def test_bad():\n    assert 1 == 2\n")
    assert bench.text("suspects") == "No function of the project is run by 1 failing test."


@pytest.mark.parametrize("entrypoint", [("python", "-c", "raise SystemExit(1)"), ("python", "-m", "unittest")])
def test_programs_that_are_not_pytest(open_bench: Open, entrypoint: tuple[str, ...]) -> None:
    observation = open_bench(entrypoint=entrypoint).call("suspects")
    assert observation.failure is not None
    assert "not run by pytest in one process" in observation.text


def test_a_test_that_hangs_leaves_what_was_known(open_bench: Open, project: Path) -> None:
    (project / "test_zz.py").write_text(
        "import time\ndef test_slow():\n    time.sleep(1.1)\ndef test_hangs():\n    time.sleep(600)\n"
    )
    assert "cart.py Cart.total 1.00" in open_bench(timeout=6.0).text("suspects")


def test_hidden_files_stay_hidden(open_bench: Open) -> None:
    assert "No function" in open_bench(ignore=("cart.py",)).text("suspects")


def test_threads_and_a_tracer_of_the_program(bench: Bench) -> None:
    bench.workspace.write_text(
        "test_cart.py",
        "import sys, threading\nfrom cart import Cart, numbers\n\n"
        "def test_bad():\n    thread = threading.Thread(target=Cart.price, args=(1,))\n"
        "    thread.start()\n    thread.join()\n    assert False\n\n"
        "def test_own_tracer():\n    sys.settrace(lambda *_: None)\n    list(numbers(1))\n",
    )
    assert bench.text("suspects").splitlines()[1:-1] == ["8-12 cart.py Cart.price 1.00"]


def test_the_plugin_on_other_pythons(python: str, project: Path) -> None:
    record = project / "lines.json"
    environment = {**os.environ, "GUMSHOE_LINES": str(record), "PYTHONPATH": str(INSIDE)}
    argv = [python, "-m", "pytest", "-q", "-p", "gumshoe_suspects", "-p", "no:cacheprovider"]
    subprocess.run(argv, cwd=project, env=environment, check=False, capture_output=True, timeout=60)
    written = json.loads(record.read_text())
    assert (written["failed"], written["passed"], list(written["lines"])) == (1, 1, ["cart.py"])
    assert written["lines"]["cart.py"]["17"][:2] == [1, 0]


def test_ochiai_by_hand() -> None:
    assert ochiai(0, 3, 2) == 0.0
    assert ochiai(2, 0, 2) == 1.0
    assert ochiai(1, 3, 4) == pytest.approx(1 / 4)


@given(st.integers(0, 50), st.integers(0, 50), st.integers(1, 50))
def test_ochiai_stays_within_bounds_and_falls_with_passing_tests(failing: int, passing: int, failed: int) -> None:
    failing = min(failing, failed)
    score = ochiai(failing, passing, failed)
    assert 0 <= score <= 1 + 1e-9
    assert ochiai(failing, passing + 1, failed) <= score
    assert math.isfinite(score)


def test_ties_go_to_more_suspicious_lines_then_to_what_ran_last() -> None:
    spectrum = Spectrum(failed=1, passed=0, lines={"a.py": {2: (1, 0, 1), 5: (1, 0, 9), 8: (1, 0, 5), 9: (1, 0, 6)}})
    spans = [Span("one", 1, 2), Span("two", 4, 5), Span("three", 7, 9)]
    assert [suspect.span.name for suspect in rank(spectrum, {"a.py": spans})] == ["three", "two", "one"]


def test_lines_belong_to_the_innermost_function() -> None:
    spectrum = Spectrum(failed=1, passed=0, lines={"a.py": {3: (1, 0, 1), 9: (1, 0, 2)}})
    ranked = rank(spectrum, {"a.py": [Span("outer", 1, 6), Span("outer.inner", 2, 4)]})
    assert [suspect.span.name for suspect in ranked] == ["outer.inner"]

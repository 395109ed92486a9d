"""What the script behind `trace` writes where a program's code takes long, or forever."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from gumshoe.tools.runs.trace_comparison import compare, summarize
from gumshoe.tools.runs.traced_calls import is_hidden, read_trace
from support.tools.inside import record

ENDLESS = """\
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


def half(n, big):
    return n / 2
"""
TEST_ENDLESS = """\
import pytest, signal
from shop import Endless, Stubborn, half


@pytest.mark.parametrize("kind", [Endless, Stubborn])
def test_half(kind):
    before = signal.getsignal(signal.SIGALRM)
    half(1, kind())
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
"""


def test_an_endless_call_is_shown_as_far_as_it_went(project: Path, tmp_path: Path) -> None:
    (project / "shop.py").write_text(
        "import os, signal\n\n\ndef spin(n):\n    while n:\n        n += 1\n"
        "        if n == 1000:\n            os.kill(os.getpid(), signal.SIGUSR2)\n"
    )
    (project / "test_cart.py").write_text("from shop import spin\n\ndef test_spin():\n    spin(0)\n    spin(1)\n")
    written = record(sys.executable, project, tmp_path, "spin", 4)
    trace = read_trace(written)
    assert (trace.failed, trace.passed, trace.unfinished) == (1, 0, True)
    first, call = trace.failing
    assert (first.outcome, call.number, call.arguments, call.outcome) == ("returned", 2, {"n": "1"}, "unfinished")
    assert call.skipped > 2000
    assert len(written) < 100_000


def test_objects_that_take_long_to_print_are_not_printed_again_and_again(project: Path, tmp_path: Path) -> None:
    (project / "shop.py").write_text(
        "import time\n\n\nclass Big:\n    def __repr__(self):\n        time.sleep(0.1)\n"
        "        open('printed', 'a').write('x')\n        return 'Big()'\n\n\n"
        "def half(n, big):\n    return big if n == 7 else n / 2\n"
    )
    (project / "test_cart.py").write_text(
        "import pytest\nfrom shop import Big, half\n\n\n@pytest.mark.parametrize('last', [300, 301])\n"
        "def test_half(last):\n    big = Big()\n    for n in range(last):\n        half(n, big)\n"
        "    assert last == 300\n"
    )
    trace = read_trace(record(sys.executable, project, tmp_path, "half", 11))
    assert 2 <= len((project / "printed").read_text()) < 20
    assert (trace.failed, trace.passed, trace.failing_calls, trace.passing_calls) == (1, 1, 301, 300)
    assert trace.failing[0].arguments == {"n": "0", "big": "Big()"}
    latest = max(trace.failing, key=lambda call: call.number)
    assert latest.arguments["n"] == "300"
    assert latest.result == "returned 150.0"
    assert latest.arguments["big"].startswith("<Big, not shown ")
    known = summarize(trace.failing, trace.passing)
    assert "big" not in known.arguments
    assert not [result for result in (*known.results[0], *known.results[1]) if "not shown" in result]
    found = compare(latest, trace.passing, [""] * 12)
    assert found is not None
    assert "big" in found.arguments  # Nobody knows whether it is the same.


def test_an_object_that_is_never_done_printing_is_interrupted(project: Path, tmp_path: Path) -> None:
    (project / "shop.py").write_text(ENDLESS)
    (project / "test_cart.py").write_text(TEST_ENDLESS)
    line = ENDLESS.splitlines().index("def half(n, big):") + 1
    trace = read_trace(record(sys.executable, project, tmp_path, "half", line))
    assert (trace.failed, trace.passed) == (0, 2)
    shown = [call.arguments["big"].partition(",")[0] for call in trace.passing]
    assert shown == ["<Endless", "<Stubborn"]


def test_an_object_that_is_slow_to_print_does_not_cost_the_others(project: Path, tmp_path: Path) -> None:
    (project / "shop.py").write_text(
        "import time\n\n\nclass Slow:\n    def __repr__(self):\n        time.sleep(30)\n\n\n"
        "class Other:\n    def __repr__(self):\n        return 'other'\n\n\n"
        "def half(n, slow, both, other):\n    return n / 2\n"
    )
    (project / "test_cart.py").write_text(
        "from shop import Other, Slow, half\n\n\ndef test_half():\n    for n in range(3):\n"
        "        half(n, Slow(), [Slow(), n], Other())\n    assert not n\n"
    )
    began = time.monotonic()
    trace = read_trace(record(sys.executable, project, tmp_path, "half", 14))
    assert time.monotonic() - began < 20
    shown = [call.arguments for call in trace.failing]
    assert all(is_hidden(each.pop("slow")) for each in shown)
    slow = "<Slow, not shown: too slow>"
    assert shown == [{"n": str(n), "both": f"[{slow}, {n}]", "other": "other"} for n in range(3)]


def test_calls_in_a_tear_down_are_seen_and_objects_with_slots_are_shown(project: Path, tmp_path: Path) -> None:
    (project / "shop.py").write_text(
        "class Base:\n"
        "    __slots__ = ('number', 'unset')\n\n"
        "    def __init__(self, number):\n"
        "        self.number = number\n\n\n"
        "class Store(Base):\n"
        "    __slots__ = ('number', '__dict__')\n\n"
        "    def close(self):\n"
        "        return 1 / self.number\n"
    )
    (project / "test_cart.py").write_text(
        "import pytest\nfrom shop import Store\n\n"
        "@pytest.fixture\ndef store():\n"
        "    opened = Store(0)\n    opened.name = 'a'\n    yield opened\n    opened.close()\n\n"
        "def test_store(store):\n    pass\n"
    )
    trace = read_trace(record(sys.executable, project, tmp_path, "close", 11))
    (call,) = trace.failing
    assert (trace.failed, call.arguments, call.outcome) == (1, {"self.number": "0", "self.name": "'a'"}, "raised")


def test_it_is_said_where_a_recursion_that_is_too_deep_ends_tracing(python: str, project: Path, tmp_path: Path) -> None:
    """From Python 3.12 on, nothing is lost."""
    (project / "shop.py").write_text("def again(n):\n    return again(n + 1)\n\n\ndef half(n):\n    return n / 2\n")
    (project / "test_cart.py").write_text(
        "import pytest\nfrom shop import again, half\n\n\ndef test_deep():\n    half(1)\n"
        "    with pytest.raises(RecursionError):\n        again(0)\n    half(2)\n\n\ndef test_half():\n    half(3)\n"
    )
    trace = read_trace(record(python, project, tmp_path, "half", 5))
    calls = sum(call.arguments["n"] == "2" for call in trace.passing)
    assert (trace.passed, trace.passing_calls) == (2, 2 + calls)
    assert trace.lost == ([] if calls else ["test_cart.py::test_deep"])

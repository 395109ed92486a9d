"""Probes that are run: how often a test was there, breakpoints on the way, what expressions may do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from gumshoe.records import Check, StopProbe
from gumshoe.tools.evidence.checks import check_probes, read_readings
from support.tools.tool_bench import Bench, fact

Open = Callable[..., Bench]
TOOLS = ("eval", "pdb", "whatif", "view", "report")
ONE_TEST = "from shop import Cart\n\n\ndef test_sizes():\n    assert Cart().sizes([5, 5, 7]) == []\n"


def test_a_probe_that_cannot_be_compiled_leaves_the_others_alone(open_bench: Open, shop: Path) -> None:
    bench = open_bench(tools=(*TOOLS, "probe"))
    place = {"path": "shop.py", "line": 6}
    text = bench.call("probe", probes=[{**place, "expression": "items"}, {**place, "expression": "(yield)"}]).text
    assert "'yield' outside function" in text
    assert "no test stops there" not in text


def test_a_value_that_is_slow_to_print_leaves_the_others_alone(open_bench: Open, shop: Path) -> None:
    (shop / "shop.py").write_text(
        "import time\n\n\nclass Slow:\n    def __repr__(self):\n        time.sleep(30)\n\n\n"
        "def half(n, slow):\n    return n / 2\n"
    )
    (shop / "test_shop.py").write_text(
        "from shop import Slow, half\n\n\ndef test_half():\n    assert half(3, Slow()) == half(2, Slow())\n"
    )
    bench = open_bench(tools=(*TOOLS, "probe"), timeout=20.0)
    place = {"path": "shop.py", "line": 10}
    text = bench.call("probe", probes=[{**place, "expression": name} for name in ("slow", "n")]).text
    slow, number = text.splitlines()
    assert "slow = <Slow, not shown: too slow> in test_shop.py::test_half" in slow
    assert "n = 3 in test_shop.py::test_half" in number
    assert "n = 2 in test_shop.py::test_half" in number


def test_probes_outlast_a_recursion_that_is_too_deep(open_bench: Open, shop: Path) -> None:
    """The interpreter ends tracing where it is too deep to call a trace function."""
    (shop / "shop.py").write_text(
        "def again(n):\n    return again(n + 1)\n\n\ndef price(n):\n    return n\n\n\n"
        "def deep():\n    try:\n        again(0)\n    except RecursionError:\n        pass\n"
    )
    (shop / "test_shop.py").write_text(
        "from shop import deep, price\n\n\ndef test_1():\n    deep()\n    price(1)\n\n\n"
        "def test_2():\n    assert price(2) == 3\n"
    )
    bench = open_bench(tools=TOOLS)
    at = StopProbe(path="shop.py", line=6, expression="n")
    lost = at.model_copy(update={"test": "test_shop.py::test_1", "value": "1"})
    later = at.model_copy(update={"test": "test_shop.py::test_2", "value": "2"})
    wrong = later.model_copy(update={"value": "3"})
    assert [each.status for each in check_probes(bench.workspace, [lost, later, wrong])] == [
        "unchecked",
        "confirmed",
        "contradicted",
    ]


def test_how_often_the_test_was_there_counts(open_bench: Open, shop: Path) -> None:
    (shop / "test_shop.py").write_text(ONE_TEST)
    bench = open_bench(tools=TOOLS)
    text = bench.text("pdb", command="b shop.py:28, number == 7\nc\np number\ncl\nb shop.py:24\nu\np found")
    assert "number = 7" in text
    found = fact(bench, "number = 7")
    test = "test_shop.py::test_sizes"
    assert found.probe == StopProbe(path="shop.py", line=28, time=3, test=test, expression="number", value="7")
    at = StopProbe(path="shop.py", line=28, test=test, expression="number")
    values: list[tuple[int | None, str]] = [(1, "5"), (3, "7"), (1, "7"), (3, "5"), (4, "7"), (None, "7"), (None, "6")]
    seen = check_probes(bench.workspace, [at.model_copy(update={"time": n, "value": value}) for n, value in values])
    assert [check.status == "confirmed" for check in seen] == [True, True, False, False, False, True, False]
    assert seen[4].note == "it does not stop there"


def test_breakpoints_set_on_the_way_do_not_count(open_bench: Open, shop: Path) -> None:
    (shop / "test_shop.py").write_text(ONE_TEST)
    bench = open_bench(tools=TOOLS)
    bench.call("pdb", command="b test_shop.py:5\nc\nb shop.py:28\nc\np number")
    first, late = [result["stop"] for result in _results(bench) if result.get("stop")]
    assert (first["time"], first["test"]) == (1, "test_shop.py::test_sizes")
    assert "time" not in late
    found = fact(bench, "number = 5")
    assert found.probe.time is None
    assert check_probes(bench.workspace, [found.probe]) == [Check(status="confirmed", telling=True)]


def test_what_stops_while_tests_are_imported_is_not_looked_for_in_a_test(open_bench: Open, shop: Path) -> None:
    (shop / "test_shop.py").write_text(
        "from shop import price\n\nPRICE = price(1)\n\n\ndef test_price():\n    assert price(4) == 7\n"
    )
    bench = open_bench(tools=TOOLS)
    assert "count = 1" in bench.text("pdb", command="b shop.py:9\nc\np count")
    found = fact(bench, "count = 1")
    assert isinstance(found.probe, StopProbe)
    assert found.probe.test == ""
    planted = found.probe.model_copy(update={"value": "4"})
    right, wrong = check_probes(bench.workspace, [found.probe, planted])
    assert right == Check(status="confirmed", telling=False, note="it stops there outside of the tests")
    assert wrong == Check(status="contradicted", note="it is 1")
    (anywhere,) = check_probes(bench.workspace, [planted.model_copy(update={"test": None, "time": None})])
    assert anywhere.status == "confirmed"


def _results(bench: Bench) -> Any:
    return bench.env.toolbox.history[-1].data["results"]


def test_evaluating_changes_nothing_and_ends(open_bench: Open, shop: Path) -> None:
    bench = open_bench(tools=TOOLS)
    at = StopProbe(path="shop.py", line=30, test="test_shop.py::test_sizes", time=1)
    expressions = {
        "found.clear()": "None",
        "len(found)": "3",
        "no_such": "1",
        "found[": "1",
        "[1 for _ in iter(int, 1)]": "1",
        "__import__('os')._exit(3)": "1",
    }
    probes = [at.model_copy(update={"expression": each, "value": value}) for each, value in expressions.items()]
    seen = check_probes(bench.workspace, [*probes, at.model_copy(update={"path": "no_such.py"})])
    assert [check.status for check in seen] == ["confirmed"] * 2 + ["contradicted"] * 5
    assert [check.note for check in seen[2:6]] == [
        "it is NameError: name 'no_such' is not defined",
        "found[: '[' was never closed (<unknown>, line 1)",
        "it is it took too long",
        "it is its process ended with exit code 3",
    ]
    assert seen[6].note == "no file no_such.py"


def test_what_a_program_writes_in_the_place_of_probes_is_passed_over() -> None:
    good = b'{"probe": 0, "event": "line", "test": "t", "time": 1, "values": ["1"]}'
    lines = [b"\xff", b"{}", b"[" * 10**5, b'{"probe": -1}', b'{"probe": 0, "values": [1]}', good]
    assert [look.values for look in read_readings(b"\n".join(lines))] == [["1"]]

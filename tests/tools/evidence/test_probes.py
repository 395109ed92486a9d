"""Findings that are run again: the probes of facts, and what came of them, also of doctests."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from gumshoe.records import Check, ContextPack, Observation, StopProbe
from gumshoe.tools.evidence.checks import check_findings, check_probes, read_readings
from gumshoe.tools.evidence.facts import FactReader, numbered_text, without_numbers
from support.folder_tasks import write_files
from support.tools.shop_program import LARGE, SHOP, SMALL, STEPS
from support.tools.tool_bench import PLACE, TOOLS, Bench, Open, fact, report

OTHER = Check(status="unchecked", note="its probe looks for something else than its quote says")
COMMANDS = (
    "b shop.py:9\nc\np total\nc\nlocals\np sorted([count, total])\nr\nu\nc\nb shop.py:30\nc\nc\np number\np found"
)


def explore(bench: Bench) -> list[Observation]:
    """Step 0 runs the tests, step 1 debugs them, step 2 changes lines."""
    changes = [(8, "replace total = total - 1"), (6, "count = 9")]
    variants = [{"path": "shop.py", "line": line, "do": do} for line, do in changes]
    return [bench.call("eval"), bench.call("pdb", command=COMMANDS), bench.call("whatif", variants=variants)]


def pack_of(observation: Observation) -> ContextPack:
    return ContextPack.model_validate(observation.data["context_pack"])


def checks(observation: Observation) -> list[tuple[str, bool | None]]:
    return [(each.check.status, each.check.telling) for each in pack_of(observation).findings if each.check is not None]


def statuses(bench: Bench, *probes: Any) -> list[str]:
    return [check.status for check in check_probes(bench.workspace, probes)]


def changed(probe: Any, *fields: dict[str, Any]) -> list[Any]:
    return [probe.model_copy(update=each) for each in fields]


TRUE = {
    "AssertionError: assert 6 == 7": ("confirmed", True),
    "test_shop.py:9 in test_large: assert price(4) == 7": ("confirmed", True),
    "total = 6": ("confirmed", True),
    "total = 4": ("confirmed", False),
    "sorted([count, total]) = [4, 6]": ("confirmed", True),
    "returns 6": ("confirmed", True),
    "found = [1, 2, 3]": ("confirmed", True),
    "shop.py:9": ("confirmed", False),
    "test_shop.py:": ("confirmed", True),
    f"shop.py:8 replace total = total - 1: 1 test now passes: {LARGE}": ("confirmed", True),
    f"shop.py:6 count = 9: 1 test now fails: {SMALL}": ("confirmed", False),
}
"""Facts that were seen, and whether they tell anything: prices are also worked out for a test that passes."""
SHOWN = {
    f"FAILED {LARGE}": "AssertionError: assert 6 == 7",
    "total = 6": "total = 6",
    "returns 6": "returns 6",
    "> shop.py:9 in price": "shop.py:9",
    "1 shop.py:8 replace total = total - 1": f"shop.py:8 replace total = total - 1: 1 test now passes: {LARGE}",
}
"""What lines with numbered facts begin with, and the quotes of findings that cite them."""


def test_findings_are_confirmed_also_in_a_fresh_sandbox_but_not_with_other_quotes(open_bench: Open, shop: Path) -> None:
    bench = open_bench(tools=TOOLS)
    explore(bench)
    observation = report(bench, *TRUE)
    assert observation.text == "reported 1 location, 11 findings: 11 confirmed"
    assert checks(observation) == [*TRUE.values()]
    findings = pack_of(observation).findings
    assert check_findings(open_bench(tools=TOOLS).workspace, findings) == findings
    edited = [one.model_copy(update={"quote": "total = 97"}) for one in findings]
    assert {str(one.check) for one in check_findings(bench.workspace, edited)} == {str(OTHER)}


def test_what_no_longer_holds_is_sent_back_once(open_bench: Open, shop: Path) -> None:
    bench = open_bench(tools=(*TOOLS, "rewrite"))
    explore(bench)
    bench.call("rewrite", path="shop.py", code="        total = total - 1\n", start=8, end=8)
    first, second = (report(bench, "AssertionError: assert 6", "total = 6", "found = [1, 2, 3]") for _ in range(2))
    assert (first.failure and first.failure.kind) == "contradicted"
    assert f"finding 2 is contradicted: at shop.py:9, time 1 in {LARGE}, total: it is 7" in first.text
    assert first.text.count("is contradicted") == 2
    assert checks(second) == [("contradicted", None), ("contradicted", None), ("confirmed", True)]


def test_a_test_as_the_place_of_the_bug_is_sent_back_once(open_bench: Open, shop: Path) -> None:
    bench = open_bench(tools=TOOLS)
    place: Any = {"path": "test_shop.py", "start": 5, "end": 5}
    assert [bench.failure("report", locations=[place]) for _ in range(2)] == ["in_tests", None]
    assert open_bench(tools=TOOLS).failure("report", locations=[*PLACE, place]) is None


def test_facts_are_numbered_in_what_is_shown(open_bench: Open, shop: Path) -> None:
    bench = open_bench(tools=TOOLS)
    history, reader = explore(bench), FactReader()
    texts = [numbered_text(one, reader.read(step, one))[0] for step, one in enumerate(history)]
    numbers = [re.findall(r"\[f(\d+)\] " + re.escape(line), "\n".join(texts))[-1] for line in SHOWN]
    reported = bench.call("report", locations=PLACE, findings=[{"fact": f"f{number}"} for number in numbers])
    assert [each.quote for each in pack_of(reported).findings] == [*SHOWN.values()]
    assert [without_numbers(text) for text in texts] == [one.text for one in history]
    last = re.findall(r"\[f(\d+)\]", texts[1])[-1]
    assert json.loads(texts[1].splitlines()[-1].partition(": ")[2]) == {"fact": int(last)}


def test_a_hundred_planted_values_are_contradicted(open_bench: Open, shop: Path) -> None:
    bench = open_bench(tools=TOOLS)
    explore(bench)
    right = [("total", 6), ("count", 4), ("number", 3), ("found", [1, 2, 3]), ("sorted([count, total])", [4, 6])]
    honest = [fact(bench, f"{name} = {value!r}").probe for name, value in right]
    planted = [
        probe.model_copy(update={"value": repr(value + off if isinstance(value, int) else [*value, off])})
        for probe, (_, value) in zip(honest, right, strict=True)
        for off in range(1, 21)
    ]
    assert statuses(bench, *planted) == ["contradicted"] * 100
    assert statuses(bench, *honest) == ["confirmed"] * 5
    (moved,) = changed(fact(bench, "AssertionError: assert 6 == 7").probe, {"line": 15})
    assert check_probes(bench.workspace, [moved]) == [Check(status="contradicted", note="it does not fail there")]


def test_where_an_object_lies_in_memory_does_not_count(open_bench: Open, project: Path) -> None:
    (project / "test_cart.py").unlink()
    (project / "test_shop.py").write_text("def test_kept():\n    kept = {id([])}\n    assert kept == set()\n")
    bench = open_bench(tools=TOOLS)
    bench.call("eval")
    probe: Any = fact(bench, "AssertionError").probe
    (address,) = re.findall(r"\d{14,15}", probe.value)
    others = (str(int(address) - 4096), "7", "1" * 16)
    moved = changed(probe, *({"value": probe.value.replace(address, other)} for other in others))
    assert statuses(bench, probe, *moved) == ["confirmed", "confirmed", "contradicted", "contradicted"]


def test_unittest_and_plain_programs(open_bench: Open, project: Path) -> None:
    (project / "shop.py").write_text(SHOP)
    (project / "test_unit.py").write_text(
        "import unittest\nfrom shop import price\n\nclass Case(unittest.TestCase):\n"
        "    def test_large(self):\n        self.assertEqual(price(4), 7)\n"
        "    def test_small(self):\n        self.assertEqual(price(2), 4)\n"
    )
    (project / "check.py").write_text("from shop import price\ntotal = price(4)\nassert total == 7, total\n")
    for entrypoint, exception in ((("-m", "unittest", "test_unit"), "6 != 7"), (("check.py",), "AssertionError: 6")):
        bench = open_bench(tools=TOOLS, entrypoint=("python", *entrypoint))
        assert exception in bench.text("pdb", command="b shop.py:9\nc\np total\nc")
        reported = report(bench, "total = 6", "AssertionError: 6")
        assert checks(reported) == [("confirmed", True), ("confirmed", True)], reported.data


def test_what_cannot_be_run_is_unchecked(open_bench: Open, shop: Path) -> None:
    bench = open_bench(tools=TOOLS, entrypoint=("true",))
    probe = StopProbe(path="shop.py", line=9, expression="total", value="6")
    assert statuses(bench, probe, None) == ["unchecked"] * 2


def test_a_trace_leads_to_probes(open_bench: Open, shop: Path) -> None:
    bench = open_bench(tools=("trace", "suspects", "report"))
    bench.call("trace", function="shop.py:price")
    (suspect,) = [line.partition(" (")[0] for line in bench.lines("suspects") if "Cart.sizes" in line]
    found = {
        "count=4": ("confirmed", True),
        "total=6": ("confirmed", True),
        "returned 6": ("confirmed", True),
        "returned 4": ("confirmed", False),
        suspect: ("confirmed", True),
    }
    assert checks(report(bench, *found)) == [*found.values()]


def test_the_tool_answers_questions_and_runs_probes_of_a_report(open_bench: Open, shop: Path) -> None:
    bench = open_bench(tools=(*TOOLS, "probe"))
    explore(bench)
    findings = pack_of(report(bench, "total = 6", "total = 4")).findings
    given = [each.probe.model_dump(mode="json", exclude_defaults=True) for each in findings if each.probe]
    question = {"path": "shop.py", "line": 9, "expression": "total"}
    change = {"path": "shop.py", "line": 6, "do": "count = 9", "effect": "no test changes"}
    strange = {**question, "expression": "(yield)"}
    assert bench.lines("probe", probes=[question, *given, {**question, "test": STEPS}, change, strange]) == [
        f"1 shop.py:9: total = 6 in {LARGE} (failed); total = 4 in {SMALL} (passed)",
        f"2 shop.py:9, time 1 in {LARGE}: confirmed",
        f"3 shop.py:9, time 1 in {SMALL}: confirmed, tells nothing: only a passing test stops there",
        f"4 shop.py:9 in {STEPS}: no test stops there",
        f"5 shop.py:6 count = 9: contradicted: the effect is: 1 test now fails: {SMALL}",
        "6 shop.py:9: (yield): 'yield' outside function (<probe>, line 1)",
    ]
    for wrong in ([], [question] * 17, [{**question, "path": "no_such.py"}], [{**question, "check": 1}]):
        assert bench.failure("probe", probes=wrong) is not None


ONE_TEST = "from shop import Cart\n\n\ndef test_sizes():\n    assert Cart().sizes([5, 5, 7]) == []\n"


def test_a_value_that_is_slow_to_print_leaves_the_others_alone(open_bench: Open, shop: Path) -> None:
    (shop / "shop.py").write_text(
        "import time\n\ndef half(n, slow):\n    return n / 2\n\n"
        "class Slow:\n    def __repr__(self):\n        time.sleep(30)\n"
    )
    (shop / "test_shop.py").write_text(
        "from shop import Slow, half\n\n\ndef test_half():\n    assert half(3, Slow()) == half(2, Slow())\n"
    )
    bench = open_bench(tools=(*TOOLS, "probe"), timeout=20.0)
    place = {"path": "shop.py", "line": 4}
    slow, number = bench.lines("probe", probes=[{**place, "expression": name} for name in ("slow", "n")])
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
    first, second = ({"test": f"test_shop.py::test_{number}"} for number in (1, 2))
    probes = changed(at, {**first, "value": "1"}, {**second, "value": "2"}, {**second, "value": "3"})
    assert statuses(bench, *probes) == ["unchecked", "confirmed", "contradicted"]


def test_how_often_the_test_was_there_counts(open_bench: Open, shop: Path) -> None:
    (shop / "test_shop.py").write_text(ONE_TEST)
    bench = open_bench(tools=TOOLS)
    bench.call("pdb", command="b shop.py:28, number == 7\nc\np number\ncl\nb shop.py:24\nu\np found")
    at = StopProbe(path="shop.py", line=28, test="test_shop.py::test_sizes", expression="number")
    assert [fact(bench, "number = 7").probe] == changed(at, {"time": 3, "value": "7"})
    values: list[tuple[int | None, str]] = [(1, "5"), (3, "7"), (1, "7"), (3, "5"), (4, "7"), (None, "7"), (None, "6")]
    probes = changed(at, *({"time": n, "value": value} for n, value in values))
    confirmed = [status == "confirmed" for status in statuses(bench, *probes)]
    assert confirmed == [True, True, False, False, False, True, False]


def test_breakpoints_set_on_the_way_do_not_count(open_bench: Open, shop: Path) -> None:
    (shop / "test_shop.py").write_text(ONE_TEST)
    bench = open_bench(tools=TOOLS)
    bench.call("pdb", command="b test_shop.py:5\nc\nb shop.py:28\nc\np number")
    results: Any = bench.env.toolbox.history[-1].data["results"]
    first, late = [result["stop"] for result in results if result.get("stop")]
    assert (first["time"], first["test"]) == (1, "test_shop.py::test_sizes")
    assert "time" not in late
    probe = fact(bench, "number = 5").probe
    assert probe.time is None
    assert check_probes(bench.workspace, [probe]) == [Check(status="confirmed", telling=True)]


def test_what_stops_while_tests_are_imported_is_not_looked_for_in_a_test(open_bench: Open, shop: Path) -> None:
    (shop / "test_shop.py").write_text(
        "from shop import price\n\nPRICE = price(1)\n\n\ndef test_price():\n    assert price(4) == 7\n"
    )
    bench = open_bench(tools=TOOLS)
    assert "count = 1" in bench.text("pdb", command="b shop.py:9\nc\np count")
    probe: Any = fact(bench, "count = 1").probe
    assert probe.test == ""
    planted, anywhere = changed(probe, {"value": "4"}, {"value": "4", "test": None, "time": None})
    right, wrong = check_probes(bench.workspace, [probe, planted])
    assert right == Check(status="confirmed", telling=False, note="it stops there outside of the tests")
    assert wrong == Check(status="contradicted", note="it is 1")
    assert statuses(bench, anywhere) == ["confirmed"]


def test_evaluating_changes_nothing_and_ends(open_bench: Open, shop: Path) -> None:
    bench = open_bench(tools=TOOLS)
    at = StopProbe(path="shop.py", line=30, test="test_shop.py::test_sizes", time=1)
    expressions = [
        ("found.clear()", "None", ""),
        ("len(found)", "3", ""),
        ("no_such", "1", "it is NameError: name 'no_such' is not defined"),
        ("found[", "1", "found[: '[' was never closed (<unknown>, line 1)"),
        ("[1 for _ in iter(int, 1)]", "1", "it is it took too long"),
        ("__import__('os')._exit(3)", "1", "it is its process ended with exit code 3"),
    ]
    probes = [at.model_copy(update={"expression": each, "value": value}) for each, value, _ in expressions]
    *seen, nowhere = check_probes(bench.workspace, [*probes, at.model_copy(update={"path": "no_such.py"})])
    assert [check.status for check in seen] == ["confirmed"] * 2 + ["contradicted"] * 4
    assert [check.note for check in seen] == [note for *_, note in expressions]
    assert nowhere == Check(status="contradicted", note="no file no_such.py")


def test_what_a_program_writes_in_the_place_of_probes_is_passed_over() -> None:
    good = b'{"probe": 0, "event": "line", "test": "t", "time": 1, "values": ["1"]}'
    lines = [b"\xff", b"{}", b"[" * 10**5, b'{"probe": -1}', b'{"probe": 0, "values": [1]}', good]
    assert [look.values for look in read_readings(b"\n".join(lines))] == [["1"]]


FAILS = """\
def half(price):
    return price.no_such

def shown():
    '''>>> half(4)
    2
    '''
"""
DIFFERS = """\
def half(price):
    '''>>> half(4)
    2
    >>> half(None)
    '''
    return price and price / 4
"""
README = "It's a shop.\n\n>>> from shop import half\n>>> half(4)\n2.0\n"


@pytest.mark.parametrize(
    ("files", "words", "place", "others"),
    [
        ({"shop.py": FAILS}, "AttributeError: 'int' object has no attribute", ("shop.py", 2), [{"line": 6}]),
        ({"shop.py": DIFFERS}, "Expected: 2 Got: 1.0", ("shop.py", 2), [{"line": 4}, {"value": "Expected: 3"}]),
        (
            {"shop.py": "def half(price):\n    return price / 4\n", "README.rst": README},
            "Expected",
            ("README.rst", 4),
            [{"line": 3}, {"value": "Expected: 3"}, {"path": "R.rst"}],
        ),
    ],
    ids=["exception", "difference", "text file"],
)
def test_a_doctest_fails_where_its_text_says(
    open_bench: Open, project: Path, files: dict[str, str], words: str, place: Any, others: list[dict[str, Any]]
) -> None:
    (project / "test_cart.py").unlink()
    write_files(project, files)
    doctests = ("python", "-m", "pytest", "-q", "--doctest-modules", "--doctest-glob=*.rst")
    bench = open_bench(tools=TOOLS, entrypoint=doctests)
    bench.call("eval")
    probe = fact(bench, words).probe
    assert (probe.path, probe.line) == place
    assert statuses(bench, probe, *changed(probe, *others)) == ["confirmed", *["contradicted" for _ in others]]

"""Findings that are run again: the probes of facts, and what came of them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gumshoe.records import Check, ContextPack, Observation, StopProbe
from gumshoe.tools.evidence.checks import check_findings, check_probes
from gumshoe.tools.evidence.facts import FactReader, numbered_text, without_numbers
from support.tools.shop_program import LARGE, SHOP, SMALL, STEPS
from support.tools.tool_bench import PLACE, TOOLS, Bench, fact, report

Open = Callable[..., Bench]
OTHER = "its probe looks for something else than its quote says"
COMMANDS = (
    "b shop.py:9\nc\np total\nc\nlocals\np sorted([count, total])\nr\nu\nc\nb shop.py:30\nc\nc\np number\np found"
)


def explore(bench: Bench) -> list[Observation]:
    """Step 0 runs the tests, step 1 debugs them, step 2 changes lines."""
    changes = [(8, "replace total = total - 1"), (6, "count = 9")]
    variants: Any = [{"path": "shop.py", "line": line, "do": do} for line, do in changes]
    return [bench.call("eval"), bench.call("pdb", command=COMMANDS), bench.call("whatif", variants=variants)]


def checks(observation: Observation) -> list[tuple[str, bool | None]]:
    pack = ContextPack.model_validate(observation.data["context_pack"])
    return [(each.check.status, each.check.telling) for each in pack.findings if each.check is not None]


TRUE = {
    "AssertionError: assert 6 == 7": ("confirmed", True),
    "test_shop.py:9 in test_large: assert price(4) == 7": ("confirmed", True),
    "total = 6": ("confirmed", True),
    "total = 4": ("confirmed", False),
    "sorted([count, total]) = [4, 6]": ("confirmed", True),
    "returns 6": ("confirmed", True),
    "found = [1, 2, 3]": ("confirmed", True),
    "shop.py:9": ("confirmed", False),
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
    assert observation.text == "reported 1 location, 10 findings: 10 confirmed"
    assert checks(observation) == [*TRUE.values()]
    pack = ContextPack.model_validate(observation.data["context_pack"])
    assert ContextPack.model_validate_json(pack.model_dump_json()) == pack
    fresh = open_bench(tools=TOOLS)
    assert check_findings(fresh.workspace, pack.findings) == pack.findings
    edited = [one.model_copy(update={"quote": "total = 97"}) for one in pack.findings]
    for one in check_findings(bench.workspace, edited):
        assert one.check == Check(status="unchecked", note=OTHER), one.probe


def test_what_no_longer_holds_is_sent_back_once(open_bench: Open, shop: Path) -> None:
    bench = open_bench(tools=(*TOOLS, "rewrite"))
    explore(bench)
    bench.call("rewrite", path="shop.py", code="        total = total - 1\n", start=8, end=8)
    first = report(bench, "AssertionError: assert 6 == 7", "total = 6", "found = [1, 2, 3]")
    assert first.failure is not None
    assert first.failure.kind == "contradicted"
    assert f"finding 2 is contradicted: at shop.py:9, time 1 in {LARGE}, total: it is 7" in first.text
    assert first.text.count("is contradicted") == 2
    second = report(bench, "AssertionError: assert 6 == 7", "total = 6", "found = [1, 2, 3]")
    assert checks(second) == [("contradicted", None), ("contradicted", None), ("confirmed", True)]


def test_a_test_as_the_place_of_the_bug_is_sent_back_once(open_bench: Open, shop: Path) -> None:
    bench = open_bench(tools=TOOLS)
    place: Any = {"path": "test_shop.py", "start": 5, "end": 5}
    first = bench.call("report", locations=[place])
    assert first.failure is not None
    assert first.failure.kind == "in_tests"
    assert bench.call("report", locations=[place]).failure is None
    other: Any = {"path": "shop.py", "start": 5, "end": 9}
    assert open_bench(tools=TOOLS).call("report", locations=[other, place]).failure is None


def test_facts_are_numbered_in_what_is_shown(open_bench: Open, shop: Path) -> None:
    bench = open_bench(tools=TOOLS)
    history, reader = explore(bench), FactReader()
    texts = [numbered_text(one, reader.read(step, one))[0] for step, one in enumerate(history)]
    numbers = [re.findall(r"\[f(\d+)\] " + re.escape(line), "\n".join(texts))[-1] for line in SHOWN]
    cited: Any = [{"fact": f"f{number}"} for number in numbers]
    observation = bench.call("report", locations=PLACE, findings=cited)
    pack = ContextPack.model_validate(observation.data["context_pack"])
    assert [each.quote for each in pack.findings] == [*SHOWN.values()]
    assert [without_numbers(text) for text in texts] == [one.text for one in history]
    last = re.findall(r"\[f(\d+)\]", texts[1])[-1]
    assert json.loads(texts[1].splitlines()[-1].partition(": ")[2]) == {"fact": int(last)}


def test_a_fact_that_was_not_shown_is_refused(open_bench: Open, shop: Path) -> None:
    bench = open_bench(tools=TOOLS)
    bench.call("eval")
    wrong: list[Any] = [{"fact": 4000}, {"fact": 0}, {"fact": "x"}, {"claim": "c"}, {"step": 0}]
    for finding in wrong:
        observation = bench.call("report", locations=PLACE, findings=[finding])
        assert observation.failure is not None, finding
        assert observation.failure.kind == "bad_arguments", finding


def test_the_frame_above_can_be_cited(open_bench: Open, shop: Path) -> None:
    bench = open_bench(tools=TOOLS)
    text = bench.text("pdb", command="b shop.py:9\nc\nup")
    assert "> test_shop.py:" in text
    assert checks(report(bench, "test_shop.py:")) == [("confirmed", False)]


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
    assert {check.status for check in check_probes(bench.workspace, planted)} == {"contradicted"}
    assert {check.status for check in check_probes(bench.workspace, honest)} == {"confirmed"}
    probe = fact(bench, "AssertionError: assert 6 == 7").probe
    moved = probe.model_copy(update={"line": 15})
    assert check_probes(bench.workspace, [probe, moved]) == [
        Check(status="confirmed", telling=True),
        Check(status="contradicted", note="it does not fail there"),
    ]


def test_where_an_object_lies_in_memory_does_not_count(open_bench: Open, project: Path) -> None:
    (project / "test_cart.py").unlink()
    (project / "test_shop.py").write_text("def test_kept():\n    kept = {id([])}\n    assert kept == set()\n")
    bench = open_bench(tools=TOOLS)
    bench.call("eval")
    (made,) = ContextPack.model_validate(report(bench, "AssertionError").data["context_pack"]).findings
    assert isinstance(made.probe, StopProbe)
    assert made.check == Check(status="confirmed", telling=True)
    (address,) = re.findall(r"\d{14,15}", made.probe.value)
    for other, status in ((str(int(address) - 4096), "confirmed"), ("7", "contradicted"), ("1" * 16, "contradicted")):
        moved = made.probe.model_copy(update={"value": made.probe.value.replace(address, other)})
        assert check_probes(bench.workspace, [moved])[0].status == status


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
    assert [check.status for check in check_probes(bench.workspace, [probe, None])] == ["unchecked"] * 2


def test_a_trace_leads_to_probes(open_bench: Open, shop: Path) -> None:
    bench = open_bench(tools=("trace", "suspects", "report"))
    bench.call("trace", function="shop.py:price")
    (suspect,) = [line.partition(" (")[0] for line in bench.text("suspects").splitlines() if "Cart.sizes" in line]
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
    pack = ContextPack.model_validate(report(bench, "total = 6", "total = 4").data["context_pack"])
    given: Any = [each.probe.model_dump(mode="json", exclude_defaults=True) for each in pack.findings if each.probe]
    question: Any = {"path": "shop.py", "line": 9, "expression": "total"}
    nowhere: Any = {"path": "shop.py", "line": 9, "expression": "total", "test": STEPS}
    change: Any = {"path": "shop.py", "line": 6, "do": "count = 9", "effect": "no test changes"}
    observation = bench.call("probe", probes=[question, *given, nowhere, change])
    assert observation.text.splitlines() == [
        f"1 shop.py:9: total = 6 in {LARGE} (failed); total = 4 in {SMALL} (passed)",
        f"2 shop.py:9, time 1 in {LARGE}: confirmed",
        f"3 shop.py:9, time 1 in {SMALL}: confirmed, tells nothing: only a passing test stops there",
        f"4 shop.py:9 in {STEPS}: no test stops there",
        f"5 shop.py:6 count = 9: contradicted: the effect is: 1 test now fails: {SMALL}",
    ]
    for wrong in ([], [question] * 17, [{**question, "path": "no_such.py"}], [{**question, "check": 1}]):
        refused: Any = wrong
        assert bench.call("probe", probes=refused).failure is not None

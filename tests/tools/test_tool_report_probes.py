"""Findings that are run again: probes derived from quotes, and what came of them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gumshoe.collect.data.evidence import failures
from gumshoe.collect.episode.tool_output import ToolOutput
from gumshoe.records import Check, ContextPack, Finding, Observation, StopProbe
from gumshoe.tools.evidence.checks import check_findings, check_probes
from gumshoe.tools.evidence.facts import numbered_text, without_numbers
from gumshoe.tools.evidence.probes import with_probes
from support.tools.reports import PLACE, TOOLS, finding, report
from support.tools.shop_program import LARGE, SHOP, SMALL, STEPS
from support.tools.tool_bench import Bench

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
    (0, "assert 6 == 7"): True,
    (0, LARGE): True,
    (0, "test_shop.py:9 in test_large: assert price(4) == 7"): True,
    (1, "total = 6"): True,
    (1, "total = 4"): False,
    (1, "sorted([count, total]) = [4, 6]"): True,
    (1, "returns 6"): True,
    (1, "found = [1, 2, 3]"): True,
    (1, "> shop.py:9 in price"): False,
    (2, f"1 shop.py:8 replace total = total - 1: 1 test now passes: {LARGE}"): True,
    (2, f"shop.py:6 count = 9: 1 test now fails: {SMALL}"): False,
}
"""Quotes of what was seen, and whether that tells anything: prices are also worked out for a test that passes."""
CITED = {
    f"FAILED {LARGE}": ("confirmed", True),
    "total = 6": ("confirmed", True),
    "total = 4": ("confirmed", False),
    "returns 6": ("confirmed", True),
    "> shop.py:9 in price": ("confirmed", False),
    "1 shop.py:8 replace total = total - 1": ("confirmed", True),
}
"""What lines with numbered facts begin with, and what comes of citing them."""
WRONG = (
    (0, "assert 6 == 8"),
    (1, "total = 7"),
    (1, "total = 46"),
    (1, "sorted([count, total]) = [4, 4]"),
    (1, "returns 7"),
    (1, "found = [1, 2]"),
    (2, f"shop.py:6 count = 9: 1 test now passes: {SMALL}"),
)

NEVER_SHOWN = (
    (0, f"{LARGE} passes"),
    (0, "assert 6 == 7\nKeyError: 'x'"),
    (1, "not total = 6"),
    (2, f"shop.py:9 skip: 2 tests now pass: {LARGE}"),
    (2, f"shop.py:8 replace total = total - 1: 1 test now passes: {LARGE}; 5 tests now fail: {SMALL}"),
    (0, "assert"),
)
"""Quotes that nothing has shown as they stand, or that say nothing."""

PATHS = "import pytest\n\n\n@pytest.mark.parametrize('p', ['a/b'])\ndef test_path(p):\n    assert p == 3\n"


def test_findings_are_confirmed_and_wrong_ones_sent_back_once(open_bench: Open, shop: Path) -> None:
    bench = open_bench("bubblewrap", tools=TOOLS)
    explore(bench)
    first = report(bench, *TRUE, *WRONG, (0, "3 failed"))
    assert first.failure is not None
    assert first.failure.kind == "contradicted"
    assert f"finding 13 is contradicted: at shop.py:9, time 1 in {LARGE}, total: it is 6" in first.text
    assert first.text.count("is contradicted") == len(WRONG)
    second = report(bench, *TRUE, *WRONG, (0, "3 failed"))
    assert second.text == "reported 1 location, 19 findings: 11 confirmed, 7 contradicted, 1 unchecked"
    assert checks(second) == [
        *(("confirmed", telling) for telling in TRUE.values()),
        *(("contradicted", None) for _ in WRONG),
        ("unchecked", None),
    ]


def test_findings_cite_numbered_facts(open_bench: Open, shop: Path) -> None:
    bench = open_bench("bubblewrap", tools=TOOLS)
    history = explore(bench)
    texts = [numbered_text(history[:index], one) for index, one in enumerate(history)]
    shown = "\n".join(texts)
    numbers = [re.findall(r"\[f(\d+)\] " + re.escape(line), shown)[-1] for line in CITED]
    cited: Any = [{"fact": f"f{number}"} for number in numbers]
    observation = bench.call("report", locations=PLACE, findings=cited)
    assert checks(observation) == [*CITED.values()]
    pack = ContextPack.model_validate(observation.data["context_pack"])
    assert [each.quote for each in pack.findings][1:3] == ["total = 6", "total = 4"]
    assert [without_numbers(text) for text in texts] == [one.text for one in history]
    last = re.findall(r"\[f(\d+)\]", texts[1])[-1]
    assert json.loads(texts[1].splitlines()[-1].partition(": ")[2]) == {"fact": int(last)}


@pytest.mark.parametrize("wrong", [{"fact": 4000}, {"fact": 0}, {"fact": "x"}, {"claim": "c"}, {"step": 0}])
def test_a_fact_that_was_not_shown_is_refused(open_bench: Open, shop: Path, wrong: dict[str, Any]) -> None:
    bench = open_bench("local", tools=TOOLS)
    bench.call("eval")
    observation = bench.call("report", locations=PLACE, findings=[wrong])
    assert observation.failure is not None
    assert observation.failure.kind == "bad_arguments"


def test_words_around_what_was_seen_are_not_confirmed(open_bench: Open, shop: Path) -> None:
    bench = open_bench("local", tools=TOOLS)
    explore(bench)
    found = report(bench, *NEVER_SHOWN)
    found = found if found.failure is None else report(bench, *NEVER_SHOWN)
    assert [status for status, _ in checks(found) if status == "confirmed"] == []


def test_the_folder_of_a_test_may_be_left_out(open_bench: Open, shop: Path) -> None:
    (shop / "conftest.py").touch()  # Makes shop.py importable from the folder.
    (shop / "checks").mkdir()
    (shop / "test_shop.py").rename(shop / "checks" / "test_shop.py")
    bench = open_bench("local", tools=TOOLS)
    bench.call("eval")
    said = report(bench, (0, f"checks/{LARGE}"), (0, LARGE), (0, LARGE.removeprefix("test_")))
    assert checks(said) == [("confirmed", True), ("confirmed", True), ("unchecked", None)]


def test_the_end_of_a_parameter_names_no_test(open_bench: Open, shop: Path) -> None:
    (shop / "test_shop.py").write_text(PATHS)
    bench = open_bench("local", tools=TOOLS)
    assert "test_shop.py::test_path[a/b]" in bench.text("eval")
    assert checks(report(bench, (0, "b]"))) == [("unchecked", None)]


def test_the_frame_above_can_be_quoted(open_bench: Open, shop: Path) -> None:
    bench = open_bench("local", tools=TOOLS)
    text = bench.text("pdb", command="b shop.py:9\nc\nup")
    line = next(line for line in text.splitlines() if line.startswith("> test_shop.py:"))
    assert checks(report(bench, (0, line), (0, line.split()[1]))) == [("confirmed", False)] * 2


def test_a_hundred_planted_values_are_contradicted(open_bench: Open, shop: Path) -> None:
    bench = open_bench("local", tools=TOOLS)
    explore(bench)
    right = [("total", 6), ("count", 4), ("number", 3), ("found", [1, 2, 3]), ("sorted([count, total])", [4, 6])]
    planted = [
        Finding(claim="c", step=1, quote=f"{name} = {value!r}")
        for name, true in right
        for off in range(1, 21)
        for value in ([true + off] if isinstance(true, int) else [[*true, off]])
    ]
    found = check_findings(bench.workspace, with_probes(planted, list(enumerate(bench.env.toolbox.history))))
    assert [each.check and each.check.status for each in found] == ["contradicted"] * 100
    honest = [Finding(claim="c", step=1, quote=f"{name} = {value!r}") for name, value in right]
    found = check_findings(bench.workspace, with_probes(honest, list(enumerate(bench.env.toolbox.history))))
    assert [each.check and each.check.status for each in found] == ["confirmed"] * 5


def test_a_quote_edited_later_is_not_confirmed_by_its_old_probe(open_bench: Open, shop: Path) -> None:
    bench = open_bench("local", tools=TOOLS)
    explore(bench)
    pack = ContextPack.model_validate(report(bench, *TRUE).data["context_pack"])
    edited = [one.model_copy(update={"quote": re.sub(r"\d+", "97", one.quote)}) for one in pack.findings]
    found = check_findings(bench.workspace, edited)
    named = next(number for number, quote in enumerate(TRUE) if quote == (0, LARGE))
    for number, one in enumerate(found):
        # A test's name has no number to change.
        wanted = pack.findings[number].check if number == named else Check(status="unchecked", note=OTHER)
        assert one.check == wanted, one.quote


def test_a_failure_is_confirmed_only_where_it_is(open_bench: Open, shop: Path) -> None:
    bench = open_bench("local", tools=TOOLS)
    explore(bench)
    pack = ContextPack.model_validate(report(bench, (0, "assert 6 == 7"), (0, LARGE)).data["context_pack"])
    probes = [one.probe for one in pack.findings]
    assert [check.status for check in check_probes(bench.workspace, probes)] == ["confirmed"] * 2
    moved = [probe and probe.model_copy(update={"line": 15}) for probe in probes]
    assert check_probes(bench.workspace, moved) == [Check(status="contradicted", note="it does not fail there")] * 2


def test_where_an_object_lies_in_memory_does_not_count(open_bench: Open, project: Path) -> None:
    (project / "test_cart.py").unlink()
    (project / "test_shop.py").write_text("def test_kept():\n    kept = {id([])}\n    assert kept == set()\n")
    bench = open_bench(tools=TOOLS)
    (failed,) = failures([ToolOutput(0, bench.call("eval"))])
    (made,) = ContextPack.model_validate(report(bench, (0, failed.message)).data["context_pack"]).findings
    assert isinstance(made.probe, StopProbe)
    assert made.check == Check(status="confirmed", telling=True)
    (address,) = re.findall(r"\d{14,15}", made.probe.value)
    for other, status in ((str(int(address) - 4096), "confirmed"), ("7", "contradicted"), ("1" * 16, "contradicted")):
        moved = made.probe.model_copy(update={"value": made.probe.value.replace(address, other)})
        assert check_probes(bench.workspace, [moved])[0].status == status


def test_probes_hold_in_a_fresh_sandbox(open_bench: Open, shop: Path) -> None:
    bench = open_bench("local", tools=TOOLS)
    explore(bench)
    pack = ContextPack.model_validate(report(bench, *TRUE).data["context_pack"])
    assert ContextPack.model_validate_json(pack.model_dump_json()) == pack
    fresh = open_bench("local", tools=TOOLS)
    assert check_findings(fresh.workspace, pack.findings) == pack.findings


def test_unittest_and_plain_programs(open_bench: Open, project: Path) -> None:
    (project / "shop.py").write_text(SHOP)
    (project / "test_unit.py").write_text(
        "import unittest\nfrom shop import price\n\nclass Case(unittest.TestCase):\n"
        "    def test_large(self):\n        self.assertEqual(price(4), 7)\n"
        "    def test_small(self):\n        self.assertEqual(price(2), 4)\n"
    )
    (project / "check.py").write_text("from shop import price\ntotal = price(4)\nassert total == 7, total\n")
    for entrypoint, exception in ((("-m", "unittest", "test_unit"), "6 != 7"), (("check.py",), "AssertionError: 6")):
        bench = open_bench("local", tools=TOOLS, entrypoint=("python", *entrypoint))
        assert exception in bench.text("pdb", command="b shop.py:9\nc\np total\nc")
        reported = report(bench, (0, "total = 6"), (0, exception))
        assert checks(reported) == [("confirmed", True), ("confirmed", True)], reported.data


def test_what_cannot_be_run_is_unchecked(open_bench: Open, shop: Path) -> None:
    bench = open_bench("local", tools=TOOLS, entrypoint=("true",))
    probe = StopProbe(path="shop.py", line=9, expression="total", value="6")
    (check,) = check_probes(bench.workspace, [probe])
    assert check.status == "unchecked"
    bench.call("view", path="shop.py")
    assert checks(report(bench, (0, "total = total - 2"))) == [("unchecked", None)]


def test_the_model_cannot_confirm_itself(open_bench: Open, shop: Path) -> None:
    bench = open_bench("local", tools=TOOLS)
    sure: Any = {**finding(0, "total = 9"), "check": {"status": "confirmed", "telling": True}}
    observation = bench.call("report", locations=PLACE, hypothesis="h", findings=[sure])
    assert observation.failure is not None
    assert "check" in observation.text


def test_a_trace_leads_to_probes(open_bench: Open, shop: Path) -> None:
    bench = open_bench("local", tools=("trace", "suspects", "report"))
    text = bench.text("trace", function="shop.py:price")
    quotes = {
        "count=4": ("confirmed", True),
        "8 total = total - 2  # total=6": ("confirmed", True),
        "returned 6": ("confirmed", True),
        "returned 4": ("confirmed", False),
    }
    assert all(quote in text for quote in list(quotes)[:3]), text
    suspect = next(line for line in bench.text("suspects").splitlines() if "Cart.sizes" in line)
    quotes[suspect] = ("confirmed", True)
    wrong = ["count=5", "8 total = total - 2  # total=9", "returned 9", "count=4, total=9"]
    assert report(bench, *((0, quote) for quote in wrong)).text.count("is contradicted") == len(wrong)
    second = report(bench, *((0, quote) for quote in [*quotes, *wrong]))
    assert checks(second) == [*quotes.values(), *[("contradicted", None)] * len(wrong)]


def test_the_tool_answers_questions_and_runs_probes_of_a_report(open_bench: Open, shop: Path) -> None:
    bench = open_bench("bubblewrap", tools=(*TOOLS, "probe"))
    explore(bench)
    pack = ContextPack.model_validate(report(bench, (1, "total = 6"), (1, "total = 4")).data["context_pack"])
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

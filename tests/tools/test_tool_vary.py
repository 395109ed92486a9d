"""vary: the usual small changes at some lines, tried one after the other."""

import json
from pathlib import Path
from typing import Any

import pytest

from gumshoe.records import Check, LineChange
from gumshoe.tools.evidence.checks import check_probes
from gumshoe.tools.runs.forked_runs import KnownRun, run_forked
from gumshoe.tools.suspects import shown_suspects
from gumshoe.tools.whatif import MOST_CHANGES
from support.folder_tasks import write_files
from support.small_projects import BULK_PRICES
from support.tools.tool_bench import Bench, Open, fact

TOOLS = ("eval", "suspects", "vary", "rewrite")
SHOP = BULK_PRICES["shop.py"]
TEN = "test_shop.py::test_ten_is_small"
REPAIR = f"shop.py:2 replace return count > 10: 1 test now passes: {TEN}"


@pytest.fixture
def shop(project: Path) -> Path:
    (project / "test_cart.py").unlink()
    return write_files(project, BULK_PRICES)


def after_eval(open_bench: Open, *arguments: Any) -> Bench:
    bench = open_bench(*arguments, tools=TOOLS)
    bench.call("eval")
    return bench


def test_the_change_that_repairs_is_found(open_bench: Open, shop: Path) -> None:
    bench = after_eval(open_bench)
    assert bench.lines("vary", path="shop.py", start=1, end=2) == [
        "6 changes tried at lines 1 to 2 of shop.py; unchanged, 1 of 3 tests fail",
        REPAIR,
        f"shop.py:2 replace return count >= 11: 1 test now passes: {TEN}",
        "2 other changes let failing tests pass, too, or some of them.",
    ]
    assert bench.workspace.patch() == ""
    probe: Any = fact(bench, REPAIR).probe
    assert (probe.line, probe.do, probe.effect) == (2, "replace return count > 10", f"1 test now passes: {TEN}")


@pytest.mark.parametrize(
    ("held", "telling", "note"),
    [("assert twice(0) == 0", True, ""), ("assert plus(-5) == -4", False, "other tests fail then")],
)
def test_what_helps_in_part(open_bench: Open, project: Path, held: str, telling: bool, note: str) -> None:
    """`vary` runs only the failing tests with such a change; what the change does to the others decides the check."""
    (project / "test_cart.py").unlink()
    (project / "sums.py").write_text("def plus(n):\n    return n + 1\n\n\ndef twice(n):\n    return n\n")
    tests = ["assert plus(1) == 3", "assert twice(2) == 4", held]
    text = "".join(f"\n\ndef test_{number}():\n    {one}\n" for number, one in enumerate(tests))
    (project / "test_sums.py").write_text("from sums import plus, twice\n" + text)
    bench = after_eval(open_bench)
    quote = "sums.py:2 replace return n + 2: 1 test now passes: test_sums.py::test_0"
    assert quote in bench.text("vary", path="sums.py", start=1, end=2)
    (check,) = check_probes(bench.workspace, [fact(bench, quote).probe])
    assert check == Check(status="confirmed", telling=telling, note=note)


def test_a_change_that_harms_others_comes_after_one_that_does_not(open_bench: Open, shop: Path) -> None:
    tried = after_eval(open_bench).data("vary", path="shop.py", start=5, end=9)["variants"]
    found = [result for result in tried if result["passes"]]
    assert found, "without the discount, ten costs what it should"
    assert all(result["passes"] == [TEN] and result["fails"] for result in found)


def test_lines_out_of_reach_are_left_after_the_first_try(open_bench: Open, shop: Path) -> None:
    (shop / "shop.py").write_text(SHOP + "    # " + "x\n" + "".join(f"    count += {n}\n" for n in range(40)))
    said = after_eval(open_bench).lines("vary", path="shop.py", start=12, end=60)
    assert said[1:] == ["The failing tests do not reach these lines."]


def test_no_more_changes_are_tried_than_said(open_bench: Open, shop: Path) -> None:
    long = "".join(f"    cost = cost + {n} - {n}\n" for n in range(60))
    (shop / "shop.py").write_text(SHOP.replace("    return cost\n", long + "    return cost\n"))
    assert len(after_eval(open_bench).data("vary", path="shop.py", start=5, end=69)["variants"]) <= MOST_CHANGES


def test_a_batch_ends_when_its_time_is_up(open_bench: Open, shop: Path) -> None:
    slow = BULK_PRICES["test_shop.py"].replace("price(10)", "time.sleep(2) or price(10)")
    (shop / "test_shop.py").write_text(f"import time\n{slow}")
    bench = open_bench(tools=TOOLS)
    outcomes = {outcome.id: outcome for outcome in bench.workspace.run_tests().outcomes}
    changes = [LineChange(path="shop.py", line=6, do=f"cost = {number}") for number in range(16)]
    runs = run_forked(bench.workspace, changes, known=KnownRun(outcomes, 0.0), repairs_only=True, seconds=8.0)
    assert runs.outcomes == outcomes
    assert [change.tells for change in runs.changes[-4:]] == [False] * 4


def test_a_file_that_does_not_parse_cannot_be_varied(open_bench: Open, shop: Path) -> None:
    (shop / "shop.py").write_text(SHOP + "\n\ndef broken(:\n")
    assert "None of them can be made: shop.py: " in after_eval(open_bench).text("vary", path="shop.py", start=1, end=2)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"path": "test_shop.py", "start": 1, "end": 5}, "bad_arguments"),
    ({"path": "shop.py", "start": 0, "end": 5}, "bad_arguments"),
    ({"path": "shop.py", "start": 5, "end": 2}, "bad_arguments"),
    ({"path": "shop.py", "start": 500, "end": 502}, "bad_arguments"),
    ({"path": "shop.py", "start": 3, "end": 4}, "nothing_to_vary"),
    ({"path": "absent.py", "start": 1, "end": 2}, "no_such_file"),
    ({"path": "shop.py"}, "bad_arguments"),
    ({"start": 1, "end": 2}, "bad_arguments"),
    ({}, "needs_suspects"),
]


def test_what_cannot_be_varied_is_said(open_bench: Open, shop: Path) -> None:
    bench = after_eval(open_bench)
    for arguments, kind in REFUSED:
        assert bench.failure("vary", **arguments) == kind, arguments


def test_it_wants_the_tests_to_be_run_first_and_again_after_an_edit(open_bench: Open, shop: Path) -> None:
    bench = open_bench(tools=TOOLS)
    place: Any = {"path": "shop.py", "start": 1, "end": 2}
    assert bench.text("vary", **place) == "error: call eval first: vary runs the tests that failed there"
    bench.call("eval")
    assert bench.failure("vary", **place) is None
    bench.call("suspects")
    bench.call("rewrite", path="shop.py", code="    cost = 3 * count", start=6, end=6)
    assert bench.failure("vary", **place) == "needs_eval"
    bench.call("eval")
    assert bench.text("vary") == "error: call suspects first, or give path, start and end"
    bench.call("suspects")
    assert bench.failure("vary") is None


def test_without_a_place_the_suspects_are_varied_until_a_change_repairs(open_bench: Open, shop: Path) -> None:
    bench = after_eval(open_bench)
    bench.call("suspects")
    observation = bench.call("vary")
    lines = observation.text.splitlines()
    assert lines[0].endswith("; unchanged, 1 of 3 tests fail")
    assert lines[1] == REPAIR
    assert lines[-2] == 'Most likely: {"path": "shop.py", "start": 2}'
    assert json.loads(lines[-1].partition(": ")[2]) == {"command": "b shop.py:2\nc\nlocals"}
    assert observation.data["place"] == {"path": "shop.py", "start": 2, "end": 2, "symbol": "is_large"}


def test_where_changes_help_some_tests_the_place_is_their_function(open_bench: Open, shop: Path) -> None:
    wrong = SHOP.replace(">= 10", "> 10").replace("cost = count * 3", "cost = sorted([count * 3, 30])[-1]")
    (shop / "shop.py").write_text(wrong)
    bench = after_eval(open_bench)
    bench.call("suspects")
    data = bench.data("vary")
    assert data["place"] == {"path": "shop.py", "start": 5, "end": 9, "symbol": "price"}
    assert {result["line"] for result in data["variants"]} >= {2, 6}, "both suspects"


def test_where_nothing_helps_the_place_is_the_first_suspect(open_bench: Open, shop: Path) -> None:
    (shop / "shop.py").write_text(SHOP.replace("cost = count * 3", "cost = int(str(count) * 3)"))
    bench = after_eval(open_bench)
    first = shown_suspects(bench.call("suspects").data)[0]
    observation = bench.call("vary")
    assert "No change lets a failing test pass." in observation.text
    place = {name: first[name] for name in ("path", "start", "end")}
    assert observation.data["place"] == {**place, "symbol": first["function"]}

"""whatif: lines changed in memory."""

import shutil
from pathlib import Path
from typing import Any

import iniconfig
import pytest

from gumshoe.tools.runs.forked_runs import read_changes
from support.tools.shop_program import LARGE, SHOP, SIZES, SMALL, STEPS
from support.tools.tool_bench import Bench, Open

TOOLS = ("whatif", "eval", "view")


def variant(line: int, do: str, **more: Any) -> Any:
    return {"path": "shop.py", "line": line, "do": do, **more}


def effects(bench: Bench, *variants: Any) -> list[tuple[list[str], list[str]]]:
    return [(result["passes"], result["fails"]) for result in bench.data("whatif", variants=[*variants])["variants"]]


def test_whatif(open_bench: Open, shop: Path) -> None:
    bench = open_bench(tools=TOOLS)
    changed = [variant(8, "replace total = total - 1"), variant(6, "count = 9"), variant(18, "skip")]
    assert bench.lines("whatif", variants=changed) == [
        "unchanged: 3 of 4 tests fail",
        f"1 shop.py:8 replace total = total - 1: 1 test now passes: {LARGE}",
        f"2 shop.py:6 count = 9: 1 test now fails: {SMALL}",
        "3 shop.py:18 skip: no test changes",
    ]
    assert bench.workspace.patch() == ""


def test_statements_that_share_a_line_are_changed_together(open_bench: Open, shop: Path) -> None:
    code = SHOP.replace("count > LIMIT:\n        total = total - 2", "count > LIMIT: total = total - 2; total += 0")
    (shop / "shop.py").write_text(code + "\n\ndef twice(x): return x\n")
    bench = open_bench(tools=TOOLS)
    changes = {
        "false": ([], []),
        "condition count > 9": ([], []),
        "replace total = total - 1 if count > LIMIT else total": ([LARGE], []),
        "replace if count > LIMIT: total -= 1": ([LARGE], []),
        "replace total = total - 1": ([LARGE], [SMALL]),
        "skip": ([], []),
        "count = 9": ([], [SMALL]),
    }
    assert effects(bench, *(variant(7, change) for change in changes)) == [*changes.values()]
    assert "never" in bench.text("whatif", variants=[variant(len(code.splitlines()) + 3, "return 2 * x")])


def test_every_kind_of_change(open_bench: Open, shop: Path) -> None:
    bench = open_bench(tools=TOOLS, timeout=300.0)
    changes = [
        (variant(7, "true"), ([], [SMALL])),
        (variant(7, "False"), ([], [])),
        (variant(6, "return 7"), ([LARGE], [SMALL])),
        (variant(6, "RATE = 9"), ([], [SMALL])),
        (variant(17, "seen = 1", time=2), ([], [])),
        (variant(17, "seen = 1", time=1), ([STEPS], [])),
        (variant(27, "skip", when="number == 2"), ([SIZES], [])),
        (variant(28, "skip", time=2), ([SIZES], [])),
    ]
    assert effects(bench, *(change for change, _ in changes)) == [effect for _, effect in changes]
    assert (shop / "shop.py").read_text() == SHOP


def test_quick_runs_passing_tests_only_where_a_failing_one_passes(open_bench: Open, shop: Path) -> None:
    """After an eval the failing tests are run in forks of one process that has imported the project. An option that
    ends runs at the first failure has no effect.
    """
    bench = open_bench(tools=TOOLS, timeout=300.0, entrypoint=("python", "-m", "pytest", "-q", "-x"))
    bench.call("eval")
    changes = [
        (variant(6, "count = 9"), [], [], False),
        (variant(8, "replace total = total - 1"), [LARGE], [], True),
        (variant(6, "return 7"), [LARGE], [SMALL], True),
        (variant(2, "skip"), [], [SMALL], True),
        (variant(7, "condition count == 2"), [], [], False),
        (variant(26, "iterate numbers[::2]"), [SIZES], [], True),
        (variant(6, "while True: pass"), [], [], False),
    ]
    observation = bench.call("whatif", variants=[change for change, *_ in changes], quick=True)
    hint = "no failing test passes (it ran before the line; in its place: replace count = 9)"
    assert observation.text.splitlines()[1].endswith(f"shop.py:6 count = 9: {hint}")
    results: Any = observation.data["variants"]
    assert [[each[name] for name in ("passes", "fails", "whole")] for each in results] == [
        effect for _, *effect in changes
    ]
    assert (results[0]["hits"], results[0]["still_fails"]) == (1, [LARGE, STEPS, SIZES])
    assert results[6]["timed_out"]


def test_quick_is_whole_where_the_failing_tests_need_the_others(open_bench: Open, shop: Path) -> None:
    (shop / "test_shop.py").write_text(
        "import shop\n\ndef test_sets():\n    shop.RATE = 3\n\ndef test_reads():\n    assert shop.price(1) == 2\n"
    )
    bench = open_bench(tools=TOOLS, timeout=300.0)
    bench.call("eval")
    (found,) = bench.data("whatif", variants=[variant(9, "return 2")], quick=True)["variants"]
    assert (found["passes"], found["whole"]) == (["test_shop.py::test_reads"], True)


@pytest.mark.parametrize("quick", [False, True])
def test_changes_reach_code_that_pytest_itself_imports(open_bench: Open, shop: Path, quick: bool) -> None:
    """As in the repositories of pytest, of its libraries, and of its plugins."""
    shutil.copytree(Path(iniconfig.__file__).parent, shop / "iniconfig")
    added = "\n\ndef doubled(number):\n    return number + 1\n"
    source = (shop / "iniconfig/__init__.py").read_text() + added
    (shop / "iniconfig/__init__.py").write_text(source)
    (shop / "test_shop.py").write_text("import iniconfig\n\ndef test_two():\n    assert iniconfig.doubled(3) == 6\n")
    bench = open_bench(tools=TOOLS)
    bench.call("eval")
    change = {"path": "iniconfig/__init__.py", "line": len(source.splitlines()), "do": "return 2 * number"}
    (found,) = bench.data("whatif", variants=[change], quick=quick)["variants"]
    assert (found["hits"], found["whole"], found["passes"]) == (1, True, ["test_shop.py::test_two"])


@pytest.mark.parametrize("given", ["''", "None"])
def test_an_expected_error_that_a_change_makes_by_chance_is_no_repair(open_bench: Open, shop: Path, given: str) -> None:
    guard = "    if value is None:\n        raise ValueError\n"
    refused = f"def test_bad():\n    with pytest.raises(ValueError):\n        # no number\n        parse({given})\n"
    (shop / "shop.py").write_text(f"def parse(text):\n    value = text.strip()\n{guard}    return value\n")
    (shop / "test_shop.py").write_text(
        f"import pytest\nfrom shop import parse\n\n{refused}\n\ndef test_good():\n    assert parse('3') == '3'\n"
    )
    changes = [variant(2, "replace value = str(int(text or ''))"), variant(3, "condition not value")]
    made, guarded = read_changes(open_bench(tools=TOOLS).call("whatif", variants=changes).data)
    assert (made.passes, made.effect) == (("test_shop.py::test_bad",), "fixes_some")
    assert guarded.effect == ("fixes_all" if given == "''" else "none")


def test_what_cannot_be_changed_is_said(open_bench: Open, shop: Path) -> None:
    (shop / "unused.py").write_text("x = 1\n")
    bench = open_bench(tools=TOOLS)
    said = [
        (variant(4, "skip"), "shop.py:4 is no statement"),
        (variant(6, "true"), "has no condition"),
        (variant(6, "total = = 3"), "invalid syntax"),
        ({"path": "unused.py", "line": 1, "do": "skip"}, "never reached"),
        (variant(7, "x = no_such_name"), f"1 test now fails: {SMALL}"),
        (variant(7, "condition (yield)"), "would turn price into a generator"),
        (variant(8, "skip", when="no_such_name"), "or its condition was never true there or raised an error"),
        (variant(8, "skip", time=99), "the line was not reached that often"),
    ]
    lines = bench.lines("whatif", variants=[change for change, _ in said])[1:]
    assert [why for line, (_, why) in zip(lines, said, strict=True) if why not in line] == []
    assert "is a test" in bench.text("whatif", variants=[{"path": "test_shop.py", "line": 5, "do": "skip"}])
    assert "no_such.py" in bench.text("whatif", variants=[{"path": "no_such.py", "line": 5, "do": "skip"}])
    assert "give 1 to 16 variants" in bench.text("whatif", variants=[])


def test_an_endless_loop_is_stopped_alone(open_bench: Open, shop: Path) -> None:
    bench = open_bench(tools=TOOLS)
    never = variant(6, "skip", when="__import__('time').sleep(3000)")
    observation = bench.call("whatif", variants=[variant(6, "while True: pass"), variant(8, "total -= -1"), never])
    assert [result.timed_out for result in read_changes(observation.data)] == [True, False, True]
    loop, repair, late = observation.text.splitlines()[1:]
    assert loop.endswith("timed out")
    assert repair.endswith(f"1 test now passes: {LARGE}")
    assert late.endswith("timed out before this took effect")


def test_a_change_that_helps_and_hangs_another_test_is_stopped_soon(open_bench: Open, shop: Path) -> None:
    bench = open_bench(tools=TOOLS, timeout=3000)  # The limit is not what ends it: this test would take too long.
    bench.call("eval")
    change = variant(9, "total = 7 if count == 4 else __import__('time').sleep(3000)")
    (found,) = bench.data("whatif", variants=[change], quick=True)["variants"]
    assert found["timed_out"]


def test_a_plain_program(open_bench: Open, project: Path) -> None:
    (project / "shop.py").write_text(SHOP)
    (project / "check.py").write_text("from shop import price\nassert price(4) == 7\n")
    bench = open_bench(tools=TOOLS, entrypoint=("python", "check.py"))
    lines = bench.lines("whatif", variants=[variant(9, "total = 7")])
    assert lines == ["unchanged: exit code 1", "1 shop.py:9 total = 7: exit code 0"]
    bench = open_bench(tools=TOOLS, entrypoint=("sh", "-c", "exit 1"))
    assert bench.failure("whatif", variants=[variant(6, "skip")]) is not None


def test_many_long_names_of_tests_leave_room_for_all_variants(open_bench: Open, shop: Path) -> None:
    (shop / "shop.py").write_text("def one():\n    return 2\n")
    names = ", ".join(f"'{number:02d}{'x' * 60}'" for number in range(40))
    test = f"@pytest.mark.parametrize('name', [{names}])\ndef test_one(name):\n    assert one() == 1\n"
    (shop / "test_shop.py").write_text(f"import pytest\nfrom shop import one\n\n{test}")
    answer = open_bench(tools=TOOLS).call(
        "whatif", variants=[variant(2, f"replace return {n} - {n} + 1") for n in range(16)]
    )
    lines = answer.text.splitlines()
    assert (answer.truncated, len(lines)) == (False, 17)
    assert all("40 tests now pass: test_shop.py::test_one[00x" in line and "and 39 more" in line for line in lines[1:])

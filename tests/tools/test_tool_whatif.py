"""whatif: lines changed in memory."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import iniconfig
import pytest

from gumshoe.tools.runs.forked_runs import read_changes
from support.tools.inside import program
from support.tools.shop_program import LARGE, SHOP, SIZES, SMALL, STEPS
from support.tools.tool_bench import Bench

Open = Callable[..., Bench]
TOOLS = ("whatif", "eval", "view")


def variant(line: int, do: str, **more: Any) -> Any:
    return {"path": "shop.py", "line": line, "do": do, **more}


def effects(bench: Bench, *variants: Any) -> list[tuple[list[str], list[str]]]:
    observation = bench.call("whatif", variants=list(variants))
    assert observation.failure is None, observation.text
    found: Any = observation.data["variants"]
    return [(result["passes"], result["fails"]) for result in found]


def test_whatif(open_bench: Open, shop: Path) -> None:
    bench = open_bench(tools=TOOLS)
    changed = [variant(8, "replace total = total - 1"), variant(6, "count = 9"), variant(18, "skip")]
    observation = bench.call("whatif", variants=changed)
    assert observation.text.splitlines() == [
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
    assert effects(
        bench,
        variant(7, "false"),
        variant(7, "condition count > 9"),
        variant(7, "replace total = total - 1 if count > LIMIT else total"),
        variant(7, "replace if count > LIMIT: total -= 1"),
        variant(7, "replace total = total - 1"),
        variant(7, "skip"),
        variant(7, "count = 9"),
    ) == [([], []), ([], []), ([LARGE], []), ([LARGE], []), ([LARGE], [SMALL]), ([], []), ([], [SMALL])]
    answer = bench.call("whatif", variants=[variant(len(code.splitlines()) + 3, "return 2 * x")])
    assert "never" in answer.text, answer.text


def test_every_kind_of_change(open_bench: Open, shop: Path) -> None:
    bench = open_bench(tools=TOOLS, timeout=300.0)
    assert effects(
        bench,
        variant(7, "true"),
        variant(7, "False"),
        variant(6, "return 7"),
        variant(6, "RATE = 9"),
        variant(17, "seen = 1", time=2),
        variant(17, "seen = 1", time=1),
        variant(27, "skip", when="number == 2"),
        variant(28, "skip", time=2),
    ) == [
        ([], [SMALL]),
        ([], []),
        ([LARGE], [SMALL]),
        ([], [SMALL]),
        ([], []),
        ([STEPS], []),
        ([SIZES], []),
        ([SIZES], []),
    ]
    assert (shop / "shop.py").read_text() == SHOP


def test_quick_runs_passing_tests_only_where_a_failing_one_passes(open_bench: Open, shop: Path) -> None:
    """After an eval the failing tests are run in forks of one process that has imported the project. An option that
    ends runs at the first failure has no effect.
    """
    bench = open_bench(tools=TOOLS, timeout=300.0, entrypoint=("python", "-m", "pytest", "-q", "-x"))
    bench.call("eval")
    changes = [
        variant(6, "count = 9"),
        variant(8, "replace total = total - 1"),
        variant(6, "return 7"),
        variant(2, "skip"),
        variant(7, "condition count == 2"),
        variant(26, "iterate numbers[::2]"),
        variant(6, "while True: pass"),
    ]
    observation = bench.call("whatif", variants=changes, quick=True)
    results: Any = observation.data["variants"]
    hint = "no failing test passes (it ran before the line; in its place: replace count = 9)"
    assert observation.text.splitlines()[1].endswith(f"shop.py:6 count = 9: {hint}")
    assert [(each["passes"], each["fails"]) for each in results] == [
        ([], []),
        ([LARGE], []),
        ([LARGE], [SMALL]),
        ([], [SMALL]),
        ([], []),
        ([SIZES], []),
        ([], []),
    ]
    assert [each["whole"] for each in results] == [False, True, True, True, False, True, False]
    assert results[0]["hits"] == 1
    assert results[0]["still_fails"] == [LARGE, STEPS, SIZES]
    assert results[6]["timed_out"]


def test_quick_is_whole_where_the_failing_tests_need_the_others(open_bench: Open, shop: Path) -> None:
    (shop / "test_shop.py").write_text(
        "import shop\n\ndef test_sets():\n    shop.RATE = 3\n\ndef test_reads():\n    assert shop.price(1) == 2\n"
    )
    bench = open_bench(tools=TOOLS, timeout=300.0)
    bench.call("eval")
    found: Any = bench.call("whatif", variants=[variant(9, "return 2")], quick=True).data
    assert found["variants"][0]["passes"] == ["test_shop.py::test_reads"]
    assert found["variants"][0]["whole"] is True


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
    change: Any = {"path": "iniconfig/__init__.py", "line": len(source.splitlines()), "do": "return 2 * number"}
    found: Any = bench.call("whatif", variants=[change], quick=quick).data["variants"]
    assert [(each["hits"], each["whole"], each["passes"]) for each in found] == [(1, True, ["test_shop.py::test_two"])]


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
    assert made.passes == ("test_shop.py::test_bad",)
    assert made.effect == "fixes_some"
    assert guarded.effect == ("fixes_all" if given == "''" else "none")


def test_what_cannot_be_changed_is_said(open_bench: Open, shop: Path) -> None:
    bench = open_bench(tools=TOOLS)
    (shop / "unused.py").write_text("x = 1\n")
    bench.workspace.write_text("unused.py", "x = 1\n")
    lines = bench.text(
        "whatif",
        variants=[
            variant(4, "skip"),
            variant(6, "true"),
            variant(6, "total = = 3"),
            {"path": "unused.py", "line": 1, "do": "skip"},
            variant(7, "x = no_such_name"),
            variant(7, "condition (yield)"),
            variant(8, "skip", when="no_such_name"),
            variant(8, "skip", time=99),
        ],
    ).splitlines()
    assert lines[1].endswith("shop.py:4 is no statement")
    assert "has no condition" in lines[2]
    assert "invalid syntax" in lines[3]
    assert lines[4].endswith("never reached")
    assert lines[5].endswith(f"1 test now fails: {SMALL}")
    assert "would turn price into a generator" in lines[6]
    assert lines[7].endswith("or its condition was never true there or raised an error")
    assert lines[8].endswith("the line was not reached that often")
    assert "is a test" in bench.text("whatif", variants=[{"path": "test_shop.py", "line": 5, "do": "skip"}])
    assert "no_such.py" in bench.text("whatif", variants=[{"path": "no_such.py", "line": 5, "do": "skip"}])
    assert "give 1 to 16 variants" in bench.text("whatif", variants=[])


def test_an_endless_loop_is_stopped_alone(open_bench: Open, shop: Path) -> None:
    bench = open_bench(tools=TOOLS)
    never = variant(6, "skip", when="__import__('time').sleep(3000)")
    observation = bench.call("whatif", variants=[variant(6, "while True: pass"), variant(8, "total -= -1"), never])
    found: Any = observation.data["variants"]
    assert [result["timed_out"] for result in found] == [True, False, True]
    assert found[1]["passes"] == [LARGE]
    assert observation.text.splitlines()[1].endswith("timed out")
    assert observation.text.splitlines()[3].endswith("timed out before this took effect")


def test_a_change_that_helps_and_hangs_another_test_is_stopped_soon(open_bench: Open, shop: Path) -> None:
    bench = open_bench(tools=TOOLS, timeout=3000)  # The limit is not what ends it: this test would take too long.
    bench.call("eval")
    change = variant(9, "total = 7 if count == 4 else __import__('time').sleep(3000)")
    data: Any = bench.call("whatif", variants=[change], quick=True).data
    (found,) = data["variants"]
    assert found["timed_out"]


def test_a_plain_program(open_bench: Open, project: Path) -> None:
    (project / "shop.py").write_text(SHOP)
    (project / "check.py").write_text("from shop import price\nassert price(4) == 7\n")
    bench = open_bench(tools=TOOLS, entrypoint=("python", "check.py"))
    assert bench.text("whatif", variants=[variant(9, "total = 7")]).splitlines() == [
        "unchanged: exit code 1",
        "1 shop.py:9 total = 7: exit code 0",
    ]


def test_an_entrypoint_that_is_no_python_program(open_bench: Open, shop: Path) -> None:
    observation = open_bench(tools=TOOLS, entrypoint=("sh", "-c", "exit 1")).call(
        "whatif", variants=[variant(6, "skip")]
    )
    assert observation.failure is not None


def test_the_script_on_other_pythons(python: str, shop: Path, tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    request = {"variants": [variant(8, "total -= 1"), variant(6, "RATE = 9")], "folder": str(folder), "deadline_s": 50}
    (folder / "request.json").write_text(json.dumps(request))
    env = {
        **os.environ,
        "GUMSHOE_WHATIF": str(folder / "request.json"),
        "PYTEST_ADDOPTS": "-p gumshoe_inside.runs.outcomes -p no:cacheprovider",
    }
    argv = [python, *program("runs.whatif"), "--", "-m", "pytest", "-q"]
    subprocess.run(argv, cwd=shop, env=env, check=True, capture_output=True, timeout=240)
    answers = json.loads((folder / "answer.json").read_text())
    assert [answer["hits"] for answer in answers] == [0, 1, 2]
    outcomes = [json.loads(line) for line in (folder / "1.jsonl").read_text().splitlines()]
    assert {line["id"]: line["outcome"] for line in outcomes}[SMALL] == "passed"


def test_many_long_names_of_tests_leave_room_for_all_variants(open_bench: Open, shop: Path) -> None:
    (shop / "shop.py").write_text("def one():\n    return 2\n")
    names = ", ".join(f"'{number:02d}{'x' * 60}'" for number in range(40))
    (shop / "test_shop.py").write_text(
        "import pytest\nfrom shop import one\n\n"
        f"@pytest.mark.parametrize('name', [{names}])\ndef test_one(name):\n    assert one() == 1\n"
    )
    bench = open_bench(tools=TOOLS)
    answer = bench.call(
        "whatif", variants=[variant(2, f"replace return {number} - {number} + 1") for number in range(16)]
    )
    lines = answer.text.splitlines()
    assert not answer.truncated
    assert len(lines) == 17
    assert all("40 tests now pass: test_shop.py::test_one[00x" in line and "and 39 more" in line for line in lines[1:])

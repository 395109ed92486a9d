"""eval, report and submit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from gumshoe.env.verifier import verify
from gumshoe.records import ContextPack, ExecResult, TestOutcome, TestRun
from gumshoe.tools.eval import describe
from support.sandboxes.sandbox_backends import CHEAPEST, NO_PLUGINS
from support.tools.tool_bench import Bench

Open = Callable[..., Bench]


def test_eval(open_bench: Open) -> None:
    observation = open_bench().call("eval")
    assert observation.text.splitlines() == [
        "1 failed, 1 passed",
        "FAILED test_cart.py::test_total",
        "  TypeError: unsupported operand type(s) for *: 'NoneType' and 'int'",
        "  test_cart.py:8 in test_total: assert cart.total() == 6",
        "  cart.py:17 in total: total += self.price(item)",
        "  cart.py:11 in price: value = item * 2",
    ]
    assert observation.data["counts"] == {"failed": 1, "passed": 1}
    assert observation.data["exit_code"] == 1


def test_eval_keeps_what_is_known_at_a_timeout(open_bench: Open, project: Path) -> None:
    (project / "test_zz.py").write_text("import time\ndef test_hangs():\n    time.sleep(600)\n")
    observation = open_bench(timeout=5.0).call("eval")
    assert observation.text.startswith("1 failed, 1 timed out, 1 passed, timed out after ")
    assert observation.data["timed_out"] is True


def test_eval_of_a_program_that_is_no_test_runner(open_bench: Open, project: Path) -> None:
    (project / "check.py").write_text("print('checking')\nraise SystemExit(4)\n")
    observation = open_bench(entrypoint=("python", "check.py")).call("eval")
    assert observation.text == "exit code 4\nchecking"
    assert observation.data["counts"] == {}


def test_eval_names_many_failures_briefly() -> None:
    outcomes = tuple(TestOutcome(id=f"t{number}", outcome="failed", message="E\n" * 50) for number in range(40))
    text = describe(TestRun(result=ExecResult(exit_code=1, output="", duration_s=1.0), outcomes=outcomes))
    lines = text.splitlines()
    assert lines[0] == "40 failed"
    assert lines[-1] == "[... 25 more failures ...]"
    assert lines[-2] == "FAILED t14"
    assert len(lines) < 60


def test_eval_shows_output_where_all_tests_passed_but_the_run_failed() -> None:
    outcomes = (TestOutcome(id="t", outcome="passed"),)
    result = ExecResult(exit_code=3, output="internal error\n", duration_s=1.0)
    assert describe(TestRun(result=result, outcomes=outcomes)) == "1 passed, exit code 3\ninternal error"


def test_report_hands_over_a_pack(bench: Bench) -> None:
    bench.call("eval")
    observation = bench.call(
        "report",
        locations=[{"path": "cart.py", "start": 11, "end": None, "symbol": None, "why": "no check"}],
        findings=[{"fact": "[f1]", "claim": "item is None"}],
        hypothesis="price does not expect None",
        ruled_out=[],
        failing_frame={"path": "cart.py", "line": 11, "function": "price"},
    )
    assert observation.text == "reported 1 location, 1 finding: 1 confirmed"
    pack = ContextPack.model_validate(observation.data["context_pack"])
    assert pack.locations[0].end == 11
    assert (pack.findings[0].step, pack.findings[0].quote[:10]) == (0, "TypeError:")
    assert pack.failing_frame is not None


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"locations": []}, "locations is empty"),
    ({"locations": [{"path": "a.py", "start": 0}]}, "argument 'locations[0].start'"),
    ({"locations": "a.py:3"}, "argument 'locations'"),
    ({"findings": [{"claim": "x"}]}, "argument 'findings[0].fact': field required"),
    ({"findings": [{"fact": 9}]}, "there is no fact f9"),
    ({"findings": [{"fact": "x"}]}, "argument 'findings[0].fact'"),
    ({"locations": None}, "argument 'locations' is missing"),
    ({"failing_frame": {"path": "a.py"}}, "argument 'failing_frame.line'"),
    ({"hypothesis": "words " * 2000}, "the report has "),
]


def test_report_refuses(bench: Bench) -> None:
    for changes, said in REFUSED:
        arguments: dict[str, Any] = {
            "locations": [{"path": "a.py", "start": 1}],
            "findings": [],
            "hypothesis": "h",
            **changes,
        }
        observation = bench.call("report", **arguments)
        assert observation.failure is not None, changes
        assert observation.text.startswith(f"error: {said}")


TAKEN: list[tuple[dict[str, JsonValue], tuple[str, int, int], str]] = [
    ({"path": "a.py", "start": 1}, ("a.py", 1, 1), ""),
    ({"path": "a.py", "start": 15, "end": 5}, ("a.py", 15, 15), "; end 5 is before start 15: taken as 15"),
    (
        {"path": "pricing/discoumts.py", "start": 1},
        ("pricing/discounts.py", 1, 1),
        "; pricing/discoumts.py taken as pricing/discounts.py",
    ),
    ({"path": "pricing/taxes.py", "start": 1}, ("pricing/taxes.py", 1, 1), ""),
    ({"path": "nothing/like.py", "start": 1}, ("nothing/like.py", 1, 1), ""),
    ({"path": "pricing/part_onf.py", "start": 1}, ("pricing/part_onf.py", 1, 1), ""),
]
"""Locations as models write them, what they are taken as, and what is said of that: a name may have a wrong letter if
only one file is spelled so.
"""


def test_locations_are_enough_for_a_report_and_small_mistakes_lose_none(bench: Bench) -> None:
    for name in ("discounts.py", "taxes.py", "part_one.py", "part_ond.py"):
        bench.workspace.write_text(f"pricing/{name}", "x = 1\n")
    for given, taken, said in TAKEN:
        observation = bench.call("report", locations=[given])
        assert observation.text == f"reported 1 location, 0 findings{said}"
        pack = ContextPack.model_validate(observation.data["context_pack"])
        assert [(place.path, place.start, place.end) for place in pack.locations] == [taken]
        assert (pack.findings, pack.hypothesis) == ((), "")


def test_fields_that_nobody_asked_for_lose_no_report(bench: Bench) -> None:
    bench.call("eval")
    sure: dict[str, JsonValue] = {"status": "confirmed", "telling": True}
    finding: dict[str, JsonValue] = {"fact": 1, "step": 9, "quote": "total = 9", "check": sure, "arguments": {}}
    place: dict[str, JsonValue] = {"path": "cart.py", "start": 11, "line": 7}
    observation = bench.call("report", locations=[place], findings=[finding])
    assert observation.failure is None
    pack = ContextPack.model_validate(observation.data["context_pack"])
    assert [(place.path, place.start, place.end) for place in pack.locations] == [("cart.py", 11, 11)]
    (found,) = pack.findings
    assert (found.step, found.quote[:10]) == (0, "TypeError:")


def test_submit_names_what_was_edited(bench: Bench) -> None:
    bench.call("rewrite", path="cart.py", code="x = 1\n")
    assert bench.call("submit").data == {"submitted": True, "edited": ["cart.py"]}


def test_a_printed_traceback_is_frames_and_an_exception(open_bench: Open, project: Path) -> None:
    (project / "test_unit.py").write_text(
        "import unittest\nfrom cart import Cart\n\nclass Case(unittest.TestCase):\n"
        "    def test_price(self):\n        Cart().price(None)\n"
    )
    observation = open_bench(entrypoint=("python", "-m", "unittest", "-v", "test_unit")).call("eval")
    outcomes: Any = observation.data["outcomes"]
    (outcome,) = outcomes
    assert outcome["message"].startswith("TypeError: unsupported operand")
    assert [(frame["path"], frame["function"]) for frame in outcome["frames"]] == [
        ("test_unit.py", "test_price"),
        ("cart.py", "price"),
    ]
    assert "  cart.py:11 in price: value = item * 2" in observation.text.splitlines()


def test_frames_of_a_program_that_is_no_test_runner(open_bench: Open, project: Path) -> None:
    (project / "check.py").write_text("from cart import Cart\n\nCart().price(None)\n")
    data: Any = open_bench(entrypoint=("python", "check.py")).call("eval").data
    assert [(frame["path"], frame["line"]) for frame in data["frames"]] == [("check.py", 3), ("cart.py", 11)]
    assert data["output"].endswith("'NoneType' and 'int'")


ENDINGS = {
    "os._exit(3)": "ended with exit code 3",
    "os.abort()": "was ended by SIGABRT",
    "ctypes.string_at(0)": "was ended by SIGSEGV",
    "os.kill(os.getpid(), 9)": "was ended by SIGKILL",
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_test_that_ends_the_process_is_named(open_bench: Open, project: Path, ending: str) -> None:
    (project / "test_cart.py").write_text(
        "import ctypes, os\nfrom cart import collect\n\ndef test_a():\n    collect()\n\n"
        f"def test_b():\n    collect()\n    {ending}\n\ndef test_c():\n    collect()\n"
    )
    bench = open_bench(tools=("eval", "suspects", "trace", "whatif"))
    observation = bench.call("eval")
    outcomes: Any = observation.data["outcomes"]
    assert {one["id"].rpartition("::")[2]: one["outcome"] for one in outcomes} == {
        "test_a": "passed",
        "test_b": "crashed",
        "test_c": "not_run",
    }
    assert observation.text.splitlines()[:3] == [
        "1 crashed, 1 passed, 1 not run",
        "CRASHED test_cart.py::test_b",
        f"  the process {ENDINGS[ending]}",
    ]
    for tool in (bench.call("suspects"), bench.call("trace", function="numbers")):
        assert f"the process {ENDINGS[ending]} in test_cart.py::test_b" in tool.text
    skipped: Any = bench.call("whatif", variants=[{"path": "cart.py", "line": 29, "do": "return []"}]).data
    assert skipped["unchanged"]["outcomes"] == {one["id"]: one["outcome"] for one in outcomes}
    verdict = verify(bench.workspace.task, None, "", CHEAPEST, trusted=False)
    assert f"the process {ENDINGS[ending]} in test_cart.py::test_b" in verdict.explanation


def test_threads_that_never_end_hold_up_no_tool(open_bench: Open, project: Path) -> None:
    (project / "test_cart.py").write_text(
        "import threading\nfrom cart import collect\n\ndef test_a():\n"
        "    threading.Thread(target=threading.Event().wait, name='endless').start()\n    assert not collect()\n"
    )
    bench = open_bench(tools=("eval", "suspects", "trace", "pdb"), timeout=50.0)
    observation = bench.call("eval")
    assert observation.text.splitlines()[0] == "1 failed"
    assert observation.text.splitlines()[-1] == "threads left running: endless"
    assert bench.call("suspects").data["failed"] == 1
    assert bench.call("trace", function="collect").data["failed"] == 1
    bench.call("pdb", command="c")
    assert bench.call("pdb", command="c").data["exit_code"] == 1


def test_xdist_in_the_projects_options_runs_no_other_processes(open_bench: Open, project: Path) -> None:
    (project / "pytest.ini").write_text("[pytest]\naddopts = -n 2 --dist loadfile\n")
    bench = open_bench("local", tools=("eval", "suspects", "trace", "whatif", "pdb"), env=dict.fromkeys(NO_PLUGINS, ""))
    observation = bench.call("eval")
    assert observation.data["counts"] == {"failed": 1, "passed": 1}
    assert "tests run in one process: -n and --forked are switched off" in observation.text.splitlines()
    assert (bench.call("suspects").data["failed"], bench.call("trace", function="price").data["failed"]) == (1, 1)
    found: Any = bench.call("whatif", variants=[{"path": "cart.py", "line": 11, "do": "return 3"}]).data
    assert found["variants"][0]["passes"] == ["test_cart.py::test_total"]
    assert "cart.py:11" in bench.text("pdb", command="b cart.py:11\nc")

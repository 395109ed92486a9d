"""eval, report and submit."""

from pathlib import Path
from typing import Any

import pytest

from gumshoe.env.verifier import verify
from gumshoe.records import ContextPack, ExecResult, TestOutcome, TestRun
from gumshoe.tools.eval import describe
from support.folder_tasks import write_files
from support.sandboxes.sandbox_backends import CHEAPEST
from support.tools.tool_bench import Bench, Open


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
    assert (observation.data["counts"], observation.data["exit_code"]) == ({"failed": 1, "passed": 1}, 1)


def test_eval_keeps_what_is_known_at_a_timeout(open_bench: Open, project: Path) -> None:
    (project / "test_zz.py").write_text("import time\ndef test_hangs():\n    time.sleep(600)\n")
    observation = open_bench(timeout=5.0).call("eval")
    assert observation.text.startswith("1 failed, 1 timed out, 1 passed, timed out after ")
    assert observation.data["timed_out"] is True


def described(exit_code: int, output: str, *outcomes: TestOutcome) -> list[str]:
    result = ExecResult(exit_code=exit_code, output=output, duration_s=1.0)
    return describe(TestRun(result=result, outcomes=outcomes)).splitlines()


def test_eval_names_many_failures_briefly_and_shows_output_where_none_tells_what_failed() -> None:
    lines = described(1, "", *(TestOutcome(id=f"t{n}", outcome="failed", message="E\n" * 50) for n in range(40)))
    assert [lines[0], *lines[-2:]] == ["40 failed", "FAILED t14", "[... 25 more failures ...]"]
    assert len(lines) < 60
    passed = TestOutcome(id="t", outcome="passed")
    assert described(3, "internal error\n", passed) == ["1 passed, exit code 3", "internal error"]


def test_report_hands_over_a_pack_and_fields_that_nobody_asked_for_lose_none(bench: Bench) -> None:
    bench.call("eval")
    sure = {"status": "confirmed", "telling": True}
    observation = bench.call(
        "report",
        locations=[{"path": "cart.py", "start": 11, "end": None, "line": 7, "symbol": None, "why": "no check"}],
        findings=[{"fact": "[f1]", "claim": "item is None", "step": 9, "quote": "total = 9", "check": sure}],
        hypothesis="price does not expect None",
        ruled_out=[],
        failing_frame={"path": "cart.py", "line": 11, "function": "price"},
    )
    assert observation.text == "reported 1 location, 1 finding: 1 confirmed"
    pack = ContextPack.model_validate(observation.data["context_pack"])
    assert [(place.path, place.start, place.end) for place in pack.locations] == [("cart.py", 11, 11)]
    assert [(found.step, found.quote[:10]) for found in pack.findings] == [(0, "TypeError:")]
    assert pack.failing_frame is not None


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"locations": []}, "locations is empty"),
    ({"locations": [{"path": "a.py", "start": 0}]}, "argument 'locations[0].start'"),
    ({"locations": "a.py:3"}, "argument 'locations'"),
    ({"findings": [{"claim": "x"}]}, "argument 'findings[0].fact': field required"),
    ({"findings": [{"fact": 9}]}, "there is no fact f9"),
    ({"findings": [{"fact": 0}]}, "argument 'findings[0].fact'"),
    ({"findings": [{"fact": "x"}]}, "argument 'findings[0].fact'"),
    ({"locations": None}, "argument 'locations' is missing"),
    ({"failing_frame": {"path": "a.py"}}, "argument 'failing_frame.line'"),
    ({"hypothesis": "words " * 2000}, "the report has "),
]


def test_report_refuses(bench: Bench) -> None:
    usual: dict[str, Any] = {"locations": [{"path": "a.py", "start": 1}], "findings": [], "hypothesis": "h"}
    for changes, said in REFUSED:
        observation = bench.call("report", **{**usual, **changes})
        assert observation.failure is not None, changes
        assert observation.text.startswith(f"error: {said}")


DISCOUNTS = "shop/discounts.py"
TAKEN: list[tuple[dict[str, Any], tuple[str, int, int], str]] = [
    ({"path": "a.py", "start": 1}, ("a.py", 1, 1), ""),
    ({"path": "a.py", "start": 15, "end": 5}, ("a.py", 15, 15), "; end 5 is before start 15: taken as 15"),
    ({"path": "shop/discoumts.py", "start": 1}, (DISCOUNTS, 1, 1), f"; shop/discoumts.py taken as {DISCOUNTS}"),
    ({"path": "shop/taxes.py", "start": 1}, ("shop/taxes.py", 1, 1), ""),
    ({"path": "nothing/like.py", "start": 1}, ("nothing/like.py", 1, 1), ""),
    ({"path": "shop/part_onf.py", "start": 1}, ("shop/part_onf.py", 1, 1), ""),
]
"""Locations as models write them, what they are taken as, and what is said of that: a name may have a wrong letter if
only one file is spelled so.
"""


def test_locations_are_enough_for_a_report_and_small_mistakes_lose_none(bench: Bench) -> None:
    for name in ("discounts.py", "taxes.py", "part_one.py", "part_ond.py"):
        bench.workspace.write_text(f"shop/{name}", "x = 1\n")
    for given, taken, said in TAKEN:
        observation = bench.call("report", locations=[given])
        assert observation.text == f"reported 1 location, 0 findings{said}"
        pack = ContextPack.model_validate(observation.data["context_pack"])
        assert [(place.path, place.start, place.end) for place in pack.locations] == [taken]
        assert (pack.findings, pack.hypothesis) == ((), "")


def test_submit_names_what_was_edited(bench: Bench) -> None:
    bench.call("rewrite", path="cart.py", code="x = 1\n")
    assert bench.call("submit").data == {"submitted": True, "edited": ["cart.py"]}


def test_a_printed_traceback_is_frames_and_an_exception(open_bench: Open, project: Path) -> None:
    case = "class Case(unittest.TestCase):\n    def test_price(self):\n        Cart().price(None)\n"
    (project / "test_unit.py").write_text(f"import unittest\nfrom cart import Cart\n\n{case}")
    (outcome,) = open_bench(entrypoint=("python", "-m", "unittest", "-v", "test_unit")).data("eval")["outcomes"]
    assert outcome["message"].startswith("TypeError: unsupported operand")
    assert [frame["function"] for frame in outcome["frames"]] == ["test_price", "price"]


def test_a_program_that_is_no_test_runner(open_bench: Open, project: Path) -> None:
    write_files(
        project, {"fails.py": "from cart import Cart\n\nCart().price(None)\n", "ends.py": "print(1)\nexit(4)\n"}
    )
    data = open_bench(entrypoint=("python", "fails.py")).data("eval")
    assert [(frame["path"], frame["line"]) for frame in data["frames"]] == [("fails.py", 3), ("cart.py", 11)]
    assert data["output"].endswith("'NoneType' and 'int'")
    observation = open_bench(entrypoint=("python", "ends.py")).call("eval")
    assert (observation.text, observation.data["counts"]) == ("exit code 4\n1", {})


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
    assert [one["outcome"] for one in outcomes] == ["passed", "crashed", "not_run"]
    assert observation.text.splitlines()[1:3] == ["CRASHED test_cart.py::test_b", f"  the process {ENDINGS[ending]}"]
    for tool in (bench.call("suspects"), bench.call("trace", function="numbers")):
        assert f"the process {ENDINGS[ending]} in test_cart.py::test_b" in tool.text
    skipped = bench.data("whatif", variants=[{"path": "cart.py", "line": 29, "do": "return []"}])
    assert skipped["unchanged"]["outcomes"] == {one["id"]: one["outcome"] for one in outcomes}
    verdict = verify(bench.workspace.task, None, "", CHEAPEST, trusted=False)
    assert f"the process {ENDINGS[ending]} in test_cart.py::test_b" in verdict.explanation


def test_threads_that_never_end_hold_up_no_tool(open_bench: Open, project: Path) -> None:
    (project / "test_cart.py").write_text(
        "import threading\nfrom cart import collect\n\ndef test_a():\n"
        "    threading.Thread(target=threading.Event().wait, name='endless').start()\n    assert not collect()\n"
    )
    bench = open_bench(tools=("eval", "suspects", "trace", "pdb"), timeout=50.0)
    lines = bench.lines("eval")
    assert (lines[0], lines[-1]) == ("1 failed", "threads left running: endless")
    assert (bench.data("suspects")["failed"], bench.data("trace", function="collect")["failed"]) == (1, 1)
    bench.call("pdb", command="c")
    assert bench.data("pdb", command="c")["exit_code"] == 1


def test_colors_in_the_projects_options_are_in_no_message(open_bench: Open, project: Path) -> None:
    (project / "pytest.ini").write_text("[pytest]\naddopts = --color=yes\n")
    (project / "test_cart.py").write_text("def test_a():\n    assert 'b' == 'a'\n")
    (outcome,) = open_bench().data("eval")["outcomes"]
    assert outcome["message"].split() == ["AssertionError:", "assert", "'b'", "==", "'a'", "-", "a", "+", "b"]


def test_xdist_in_the_projects_options_runs_no_other_processes(open_bench: Open, project: Path) -> None:
    (project / "pytest.ini").write_text("[pytest]\naddopts = -n 2 --dist loadfile\n")
    bench = open_bench("local", tools=("eval", "suspects", "trace", "whatif", "pdb"), sandbox={"env": {}})
    observation = bench.call("eval")
    assert observation.data["counts"] == {"failed": 1, "passed": 1}
    assert "tests run in one process: -n and --forked are switched off" in observation.text.splitlines()
    assert (bench.call("suspects").data["failed"], bench.call("trace", function="price").data["failed"]) == (1, 1)
    found = bench.data("whatif", variants=[{"path": "cart.py", "line": 11, "do": "return 3"}])
    assert found["variants"][0]["passes"] == ["test_cart.py::test_total"]
    assert "cart.py:11" in bench.text("pdb", command="b cart.py:11\nc")

"""All tools together: on one project in the newest syntax that each Python here knows, and through snapshots."""

from pathlib import Path
from textwrap import indent

import pytest

from gumshoe.env import DebugEnv, SandboxConfig
from gumshoe.env.diff import make_patch
from gumshoe.records import Oracle, ToolCall, WorkspaceSpec
from support.folder_tasks import folder_task, write_files
from support.pythons import find_pythons, make_environment
from support.tools.tool_bench import Bench

NEWEST = {
    6: 'price = int(f"{price:_d}".replace("_", ""))',
    7: "price: 'int' = price",
    8: 'if (cost := price) < 0:\n    raise ValueError(f"{cost=}")',
    9: 'price = ({"a": price} | {})["a"]',
    10: "match price:\n    case int():\n        pass",
    11: "try:\n    pass\nexcept* ValueError:\n    raise",
    12: 'def same[T](one: T) -> T:\n    return one\nprice = int(f"{f"{same(price)}"}")',
    13: "def same[T = int](one: T) -> T:\n    return one\nprice = same(price)",
    14: 'try:\n    price = t"{price}".values[0]\nexcept ValueError, TypeError:\n    raise',
}
"""By the minor version of Python 3: what the code and its tests do with each price."""
CODE = (
    "def total(prices):\n    result = 0\n    for price in prices:\n{}\n        result += price\n    return result{}\n"
)
TESTS = """\
import unittest

from shop import total


class Prices(unittest.TestCase):
    def test_total(self):
        for price in [5]:
{}
            self.assertEqual(total([price, 2]), 7)

    def test_any(self):
        self.assertTrue(total([1, 2]))
"""
FAILING, PASSING = ("test_shop.Prices.test_total",), ("test_shop.Prices.test_any",)


@pytest.mark.needs("bubblewrap")
@pytest.mark.parametrize("python", find_pythons(with_pytest=False), ids=lambda path: path.parent.parent.name)
def test_every_tool_in_the_newest_syntax(python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GUMSHOE_CACHE", str(tmp_path / "cache"))
    minor = make_environment(python, "0" * 16)[1]
    statement = NEWEST.get(minor, NEWEST[14])
    buggy, clean = (CODE.format(indent(statement, " " * 8), end) for end in (" + 1", ""))
    files = {"shop.py": buggy, "test_shop.py": TESTS.format(indent(statement, " " * 12))}
    workspace = WorkspaceSpec(path=str(write_files(tmp_path / "project", files)), environment="0" * 16)
    task = folder_task(tmp_path, workspace=workspace, entrypoint=("python", "-m", "unittest", "-v"))
    gold = make_patch({"shop.py": (buggy.encode(), clean.encode())})
    oracle = Oracle(task_id="shop", gold_patch=gold, fail_to_pass=FAILING, pass_to_pass=PASSING)
    tools = ("eval", "suspects", "trace", "whatif", "vary", "pdb", "reproduce", "view", "grep", "rewrite", "submit")
    sandbox = SandboxConfig(kind="bubblewrap", packages=())
    env = DebugEnv(task, oracle=oracle, tools=tools, sandbox=sandbox, trusted=True)
    try:
        env.reset(seed=0)
        bench = Bench(env)
        last = buggy.count("\n")
        assert bench.data("eval")["counts"] == {"failed": 1, "passed": 1}
        assert bench.lines("suspects")[1].startswith(f"1-{last} shop.py total")
        assert "  returned 8" in bench.lines("trace", function="total")
        repair = {"path": "shop.py", "line": last, "do": "replace return result"}
        assert bench.data("whatif", variants=[repair])["variants"][0]["passes"] == [*FAILING]
        varied = bench.data("vary", path="shop.py", start=1, end=last)["variants"]
        assert any(each.get("passes") == [*FAILING] for each in varied)
        assert "result = 3" in bench.lines("pdb", command=f"b shop.py:{last}\nc\np result")
        assert bench.data("grep", pattern="def total")["matches"]
        bench.call("rewrite", path="shop.py", code=clean)
        assert bench.data("eval")["passed"]
        _, reward, _, _, info = env.step(ToolCall(id="1", name="submit", arguments={}))
        assert (reward, info["verdict"].tampering, info["verdict"].unvaried) == (1.0, (), ())
    finally:
        env.close()


def test_an_episode_goes_back_to_its_paused_program(bench: Bench) -> None:
    bench.call("pdb", command="b cart.py:17, item is None\nc\n!total = 40")
    bench.call("bash", command="mkdir sub; cd sub; export WHERE=here")
    moment = bench.env.snapshot()
    for _ in range(2):
        assert "program ended with exit code 1" in bench.text("pdb", command="cl\nc\nc")
        bench.call("rewrite", path="cart.py", start=11, end=11, code="        return 0")
        assert "> cart.py:15 in total (breakpoint 1)" in bench.text("pdb", command="b cart.py:15\nc")
        bench.call("bash", command="cd /; export WHERE=there; rmdir $OLDPWD")
        bench.env.restore(moment)
        assert bench.workspace.patch() == ""
        assert bench.text("pdb", command="p total, item") == "total, item = (40, None)"
        assert bench.text("pdb", command="b") == "breakpoint 1 at cart.py:17 (if item is None)"
        assert bench.text("bash", command="basename $PWD; echo $WHERE") == "sub\nhere"


def test_a_program_that_leaves_without_a_word_is_back_as_well(bench: Bench) -> None:
    bench.call("pdb", command="b cart.py:17\nc")
    moment = bench.env.snapshot()
    assert bench.text("pdb", command="!import os\n!os._exit(3)") == "program ended with exit code 3"
    bench.env.restore(moment)
    assert bench.text("pdb", command="p total") == "total = 0"
    other = bench.env.snapshot()
    bench.call("pdb", command="n")
    bench.env.restore(other)
    bench.env.restore(moment)
    assert bench.lines("pdb", command="n")[0] == "> cart.py:16 in total"


def test_a_program_with_threads_starts_anew(bench: Bench) -> None:
    code = "!import threading; threading.Thread(target=threading.Event().wait, daemon=True).start()"
    bench.call("pdb", command=f"b cart.py:17\nc\n{code}")
    moment = bench.env.snapshot()
    bench.call("pdb", command="cl")
    bench.env.restore(moment)
    assert bench.lines("pdb", command="b\np 1")[0] == "breakpoint 1 at cart.py:17"


def test_a_new_episode_knows_nothing_of_the_old_one(bench: Bench) -> None:
    bench.call("bash", command="cd /; export NAME=old")
    bench.call("pdb", command="b cart.py:17\nc")
    bench.env.reset(seed=1)
    bench.workspace = bench.env.workspace
    assert bench.text("bash", command='echo "[$NAME]"; ls') == "[]\ncart.py  test_cart.py"
    assert bench.text("pdb", command="b") == "no breakpoints"

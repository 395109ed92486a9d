"""All tools, and the verdict, on one project in the newest syntax that each Python here knows."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent
from typing import Any

import pytest
from pydantic import JsonValue

from gumshoe.env import DebugEnv, SandboxConfig
from gumshoe.env.diff import make_patch
from gumshoe.records import Limits, Oracle, Task, ToolCall, WorkspaceSpec
from support.pythons import find_pythons, make_environment
from support.tools.tool_bench import Bench

pytestmark = pytest.mark.needs("bubblewrap")

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


@pytest.mark.parametrize("python", find_pythons(with_pytest=False), ids=lambda path: path.parent.parent.name)
def test_every_tool_in_the_newest_syntax(python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GUMSHOE_CACHE", str(tmp_path / "cache"))
    minor = make_environment(python, "0" * 16)[1]
    statement = NEWEST.get(minor, NEWEST[14])
    buggy, clean = (CODE.format(indent(statement, " " * 8), end) for end in (" + 1", ""))
    project = tmp_path / "project"
    project.mkdir()
    (project / "shop.py").write_text(buggy)
    (project / "test_shop.py").write_text(TESTS.format(indent(statement, " " * 12)))
    task = Task(
        id="shop",
        source="test",
        problem_statement="A total is one too large.",
        workspace=WorkspaceSpec(path=str(project), environment="0" * 16),
        entrypoint=("python", "-m", "unittest", "-v"),
        limits=Limits(command_timeout_s=60.0),
    )
    gold = make_patch({"shop.py": (buggy.encode(), clean.encode())})
    oracle = Oracle(task_id="shop", gold_patch=gold, fail_to_pass=FAILING, pass_to_pass=PASSING)
    tools = ("eval", "suspects", "trace", "whatif", "vary", "pdb", "reproduce", "view", "grep", "rewrite", "submit")
    env = DebugEnv(
        task, oracle=oracle, tools=tools, sandbox=SandboxConfig(kind="bubblewrap", packages=()), trusted=True
    )
    try:
        env.reset(seed=0)
        bench = Bench(env)
        last = buggy.count("\n")
        assert bench.call("eval").data["counts"] == {"failed": 1, "passed": 1}
        assert bench.call("suspects").text.splitlines()[1].startswith(f"1-{last} shop.py total")
        assert "  returned 8" in bench.text("trace", function="total").splitlines()
        repair: dict[str, JsonValue] = {"path": "shop.py", "line": last, "do": "replace return result"}
        changed: Any = bench.call("whatif", variants=[repair]).data
        assert changed["variants"][0]["passes"] == [*FAILING]
        varied: Any = bench.call("vary", path="shop.py", start=1, end=last).data
        assert any(each.get("passes") == [*FAILING] for each in varied["variants"])
        assert "result = 3" in bench.text("pdb", command=f"b shop.py:{last}\nc\np result").splitlines()
        assert bench.call("grep", pattern="def total").data["matches"]
        bench.call("rewrite", path="shop.py", code=clean)
        assert bench.call("eval").data["passed"]
        _, reward, _, _, info = env.step(ToolCall(id="1", name="submit", arguments={}))
        assert (reward, info["verdict"].tampering, info["verdict"].unvaried) == (1.0, (), ())
    finally:
        env.close()

"""Verdicts with the runners of Django and sympy, whose tests go by docstrings and bare functions.

The official parser reads the same output: where it sees a test pass, so does the verifier.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from swebench.harness.log_parsers import python as official

from gumshoe.env.diff import make_patch
from gumshoe.env.verifier import Verifier, verify
from gumshoe.records import Oracle, Task
from support.folder_tasks import folder_task
from support.runner_projects import BROKEN, BUGGY, CLEAN, RUNNERS, write_buggy
from support.sandboxes.sandbox_backends import CHEAPEST

pytestmark = pytest.mark.needs("bubblewrap")

SKIPS = b"import unittest\n\n\ndef total(prices):\n    raise unittest.SkipTest('no')\n\n\ndef same(n):\n    return n\n"
LEAVES = b"import os\n\n\ndef total(prices):\n    os._exit(0)\n\n\ndef same(n):\n    return n\n"
PARSERS = cast(
    dict[str, Callable[[str, Any], dict[str, str]]],
    {"django": official.parse_log_django, "sympy": official.parse_log_sympy},
)


@pytest.fixture(params=RUNNERS)
def case(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Task, Oracle]:
    files, entrypoint, failing, passing = RUNNERS[request.param]
    write_buggy(tmp_path, files)
    task = folder_task(tmp_path, entrypoint=entrypoint)
    gold = make_patch({"shop.py": (BUGGY, CLEAN)})
    return request.param, task, Oracle(task_id="shop", gold_patch=gold, fail_to_pass=failing, pass_to_pass=passing)


@pytest.mark.parametrize("after", [CLEAN, BROKEN], ids=["gold", "breaks another"])
def test_the_official_parser_sees_the_same(case: tuple[str, Task, Oracle], after: bytes) -> None:
    name, task, oracle = case
    patch = make_patch({"shop.py": (BUGGY, after)})
    with Verifier(task, oracle, CHEAPEST, trusted=True) as verifier:
        run, _ = verifier.observe(patch)
        verdict = verifier.verify(patch)
    official_map = PARSERS[name](run.result.output, None)
    for test in (*oracle.fail_to_pass, *oracle.pass_to_pass):
        assert (official_map.get(test) == "PASSED") is not (test in verdict.failing)
    assert verdict.resolved is (after == CLEAN)


def test_code_under_test_cannot_leave_its_tests(case: tuple[str, Task, Oracle]) -> None:
    name, task, oracle = case
    leaving = make_patch({"shop.py": (BUGGY, {"django": SKIPS, "sympy": LEAVES}[name])})
    assert not verify(task, oracle, leaving, CHEAPEST, trusted=True).resolved


def test_a_patch_of_the_runner_is_put_back(case: tuple[str, Task, Oracle]) -> None:
    _, task, oracle = case
    script = task.entrypoint[0].removeprefix("./")
    before = (Path(str(task.workspace.path)) / script).read_bytes()
    easy = b"#!/usr/bin/env python\nprint('test_total ok')\n"
    patch = make_patch({script: (before, easy), "shop.py": (BUGGY, CLEAN)})
    assert verify(task, oracle, patch, CHEAPEST, trusted=True).resolved
    assert not verify(task, oracle, make_patch({script: (before, easy)}), CHEAPEST, trusted=True).resolved

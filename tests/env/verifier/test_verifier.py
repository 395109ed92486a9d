"""Verdicts of the verifier, alone and at the end of an episode."""

import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest
from swebench.harness.log_parsers import python as official

from gumshoe.env import DebugEnv
from gumshoe.env.diff import make_patch
from gumshoe.env.verifier import Verifier, verify
from gumshoe.errors import SandboxError, TaskError
from gumshoe.records import Oracle, Task, ToolCall, WorkspaceSpec
from support.folder_tasks import folder_task, write_files
from support.runner_projects import BROKEN, RUNNERS, write_buggy
from support.runner_projects import BUGGY as BUGGY_SHOP
from support.runner_projects import CLEAN as CLEAN_SHOP
from support.sandboxes.sandbox_backends import CHEAPEST

pytestmark = pytest.mark.needs("bubblewrap")

BUGGY, CLEAN = b"def double(n):\n    return n\n", b"def double(n):\n    return n + n\n"
TESTS = (
    "from shop import double\n\n\ndef test_double():\n    assert double(2) == 4\n\n\n"
    "def test_none():\n    assert double(0) == 0\n"
)
GOLD = make_patch({"shop.py": (BUGGY, CLEAN)})
WRONG = make_patch({"shop.py": (BUGGY, BUGGY.replace(b"n\n", b"3 * n\n"))})


@pytest.fixture
def task(tmp_path: Path) -> Task:
    return folder_task(tmp_path, {"shop.py": BUGGY, "test_shop.py": TESTS})


ORACLE = Oracle(
    task_id="shop",
    gold_patch=GOLD,
    fail_to_pass=("test_shop.py::test_double",),
    pass_to_pass=("test_shop.py::test_none",),
)


@pytest.mark.parametrize("oracle", [ORACLE, None], ids=["named", "known"])
def test_one_verifier_gives_several_verdicts(task: Task, oracle: Oracle | None) -> None:
    with Verifier(task, oracle, CHEAPEST, trusted=False) as verifier:
        for patch in (GOLD, WRONG, GOLD):
            verdict = verifier.verify(patch)
            assert verdict.resolved is (patch == GOLD)
            assert verdict.failing == (() if patch == GOLD else ORACLE.fail_to_pass)
    with pytest.raises(SandboxError, match="has been closed"):
        verifier.verify(GOLD)


def test_the_known_tests_are_those_of_the_sandbox(tmp_path: Path) -> None:
    tests = "import os\n\nif 'MORE' in os.environ:\n    def test_more(): pass\n\ndef test_always(): pass\n"
    path = str(write_files(tmp_path, {"test_shop.py": tests}))
    task = folder_task(tmp_path, workspace=WorkspaceSpec(path=path, content="0" * 64))
    for env, number in ({}, 1), ({"MORE": "1"}, 2), ({}, 1):
        with Verifier(task, None, CHEAPEST.model_copy(update={"env": env}), trusted=False) as verifier:
            assert len(verifier.expected.pass_to_pass) == number


@pytest.mark.parametrize("entrypoint", [("python", "-m", "unittest"), ("pytest", "-q"), ("sh", "-c", "pytest -q")])
def test_every_runner_gives_a_verdict(task: Task, entrypoint: tuple[str, ...]) -> None:
    (Path(str(task.workspace.path)) / "test_unit.py").write_text(
        "import unittest\n\nfrom shop import double\n\n\nclass Unit(unittest.TestCase):\n"
        "    def test_double(self):\n        self.assertEqual(double(2), 4)\n"
    )
    assert verify(task.model_copy(update={"entrypoint": entrypoint}), None, GOLD, CHEAPEST, trusted=False).resolved


def test_what_the_interpreter_loads_of_the_repository_at_its_start_is_that_of_the_patch(task: Task) -> None:
    folder = Path(str(task.workspace.path))
    (folder / "sitecustomize.py").write_text("import shop\n")
    config = CHEAPEST.model_copy(update={"env": {**CHEAPEST.env, "PYTHONPATH": "/workspace"}})
    assert task.workspace.workdir == "/workspace"
    assert verify(task, ORACLE, GOLD, config, trusted=False).resolved


def test_what_is_wrong_with_a_task_is_raised(task: Task, tmp_path: Path) -> None:
    gone = task.model_copy(update={"workspace": WorkspaceSpec(path=str(tmp_path / "gone"))})
    with pytest.raises(TaskError, match="not a folder"):
        verify(gone, ORACLE, GOLD, CHEAPEST, trusted=False)
    unfit = make_patch({"shop.py": (b"def triple(n):\n    pass\n", CLEAN)})
    with pytest.raises(TaskError, match="shop"):
        verify(task, ORACLE, unfit, CHEAPEST, trusted=False)


def test_an_episode_may_submit_twice(task: Task) -> None:
    with closing(
        DebugEnv(task, oracle=ORACLE, tools=("bash", "rewrite", "submit"), sandbox=CHEAPEST, trusted=False)
    ) as env:
        env.reset(seed=0)
        start = env.snapshot()
        for code, reward in ((BUGGY.replace(b"n\n", b"n * 2 - 1\n"), 0.0), (CLEAN, 1.0)):
            env.restore(start)
            wanted = code.decode().rstrip("\n")
            env.step(ToolCall(id="1", name="rewrite", arguments={"path": "shop.py", "code": wanted}))
            env.step(ToolCall(id="2", name="bash", arguments={"command": f"echo {os.getpid()} > /tmp/left"}))
            assert env.step(ToolCall(id="3", name="submit"))[1] == reward
        env.reset(seed=0)
        env.step(ToolCall(id="4", name="bash", arguments={"command": "sed -i 's/return n/return n + n/' shop.py"}))
        assert env.step(ToolCall(id="5", name="submit"))[1] == 1.0


# --- with the runners of Django and sympy, whose tests go by docstrings and bare functions

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
    gold = make_patch({"shop.py": (BUGGY_SHOP, CLEAN_SHOP)})
    return request.param, task, Oracle(task_id="shop", gold_patch=gold, fail_to_pass=failing, pass_to_pass=passing)


@pytest.mark.parametrize("after", [CLEAN_SHOP, BROKEN], ids=["gold", "breaks another"])
def test_the_official_parser_sees_the_same(case: tuple[str, Task, Oracle], after: bytes) -> None:
    """It reads the same output: where it sees a test pass, so does the verifier."""
    name, task, oracle = case
    patch = make_patch({"shop.py": (BUGGY_SHOP, after)})
    with Verifier(task, oracle, CHEAPEST, trusted=True) as verifier:
        run, _ = verifier.observe(patch)
        verdict = verifier.verify(patch)
    official_map = PARSERS[name](run.result.output, None)
    for test in (*oracle.fail_to_pass, *oracle.pass_to_pass):
        assert (official_map.get(test) == "PASSED") is not (test in verdict.failing)
    assert verdict.resolved is (after == CLEAN_SHOP)


def test_code_under_test_cannot_leave_its_tests_and_a_patch_of_the_runner_is_put_back(
    case: tuple[str, Task, Oracle],
) -> None:
    name, task, oracle = case
    leaving = make_patch({"shop.py": (BUGGY_SHOP, {"django": SKIPS, "sympy": LEAVES}[name])})
    script = task.entrypoint[0].removeprefix("./")
    before = (Path(str(task.workspace.path)) / script).read_bytes()
    easy = b"#!/usr/bin/env python\nprint('test_total ok')\n"
    patch = make_patch({script: (before, easy)})
    with Verifier(task, oracle, CHEAPEST, trusted=True) as verifier:
        assert not verifier.verify(leaving).resolved
        assert not verifier.verify(patch).resolved
        assert verifier.verify(patch + make_patch({"shop.py": (BUGGY_SHOP, CLEAN_SHOP)})).resolved

"""Verdicts whose sandbox is prepared while the agent works: as cold as the others, and only sooner."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gumshoe.env import DebugEnv, open_sandbox
from gumshoe.env.diff import make_patch
from gumshoe.env.verifier import PreparedVerifier, Verifier, verify
from gumshoe.errors import SandboxError, TaskError
from gumshoe.records import Oracle, Task, ToolCall, WorkspaceSpec
from support.folder_tasks import folder_task, write_files
from support.sandboxes.sandbox_backends import WARM

pytestmark = pytest.mark.needs("bubblewrap")

BUGGY, CLEAN = b"def double(n):\n    return n\n", b"def double(n):\n    return n + n\n"
TESTS = """\
import os

from shop import double


def test_double():
    print("namespace", os.readlink("/proc/self/ns/pid"))
    assert double(2) == 4


def test_none():
    assert double(0) == 0
"""
GOLD = make_patch({"shop.py": (BUGGY, CLEAN)})
WRONG = make_patch({"shop.py": (BUGGY, BUGGY.replace(b"n\n", b"3 * n\n"))})


@pytest.fixture
def task(tmp_path: Path) -> Task:
    files = {"shop.py": BUGGY, "test_shop.py": TESTS}
    return folder_task(tmp_path, files, entrypoint=("python", "-m", "pytest", "-s"))


ORACLE = Oracle(
    task_id="shop",
    gold_patch=GOLD,
    fail_to_pass=("test_shop.py::test_double",),
    pass_to_pass=("test_shop.py::test_none",),
)


def namespace(output: str) -> str:
    """The sandbox that printed it, by its namespace of processes."""
    return next(word for word in output.split() if word.startswith("pid:"))


@pytest.mark.parametrize(
    ("oracle", "patch"), [(ORACLE, GOLD), (ORACLE, WRONG), (None, GOLD)], ids=["named", "named, wrong", "known"]
)
def test_a_prepared_verdict_is_the_same(task: Task, oracle: Oracle | None, patch: str) -> None:
    prepared = PreparedVerifier(task, oracle, WARM, trusted=False)
    prepared.wait()
    now, cold = prepared.verify(patch), verify(task, oracle, patch, WARM, trusted=False)
    assert now.resolved is (patch == GOLD)
    assert (now.problems, now.failing_fail_to_pass, now.failing_pass_to_pass) == (
        cold.problems,
        cold.failing_fail_to_pass,
        cold.failing_pass_to_pass,
    )
    assert now.run.outcomes == cold.run.outcomes


def test_the_known_tests_are_those_of_the_sandbox(tmp_path: Path) -> None:
    tests = "import os\n\nif 'MORE' in os.environ:\n    def test_more(): pass\n\ndef test_always(): pass\n"
    path = str(write_files(tmp_path, {"test_shop.py": tests}))
    task = folder_task(tmp_path, workspace=WorkspaceSpec(path=path, content="0" * 64))
    for env, number in ({}, 1), ({"MORE": "1"}, 2), ({}, 1):
        with Verifier(task, None, WARM.model_copy(update={"env": env}), trusted=False) as verifier:
            assert len(verifier.expected.pass_to_pass) == number


@pytest.mark.parametrize("entrypoint", [("python", "-m", "unittest"), ("pytest", "-q"), ("sh", "-c", "pytest -q")])
def test_every_runner_can_be_prepared(task: Task, entrypoint: tuple[str, ...]) -> None:
    (Path(str(task.workspace.path)) / "test_unit.py").write_text(
        "import unittest\n\nfrom shop import double\n\n\nclass Unit(unittest.TestCase):\n"
        "    def test_double(self):\n        self.assertEqual(double(2), 4)\n"
    )
    prepared = PreparedVerifier(task.model_copy(update={"entrypoint": entrypoint}), None, WARM, trusted=False)
    prepared.wait()
    assert prepared.verify(GOLD).resolved


def test_both_variants_run_in_a_fork_of_what_was_started_ahead(task: Task) -> None:
    plain = "from shop import double\n\n\ndef test_double():\n    assert double(2) == 4\n"
    (Path(str(task.workspace.path)) / "test_shop.py").write_text(plain)
    verdict = verify(task, ORACLE.model_copy(update={"pass_to_pass": ()}), GOLD, WARM, trusted=False)
    assert verdict.resolved
    assert verdict.run.result.warm, verdict.run.result.cold


def test_what_the_interpreter_loads_of_the_repository_at_its_start_is_that_of_the_patch(task: Task) -> None:
    folder = Path(str(task.workspace.path))
    (folder / "sitecustomize.py").write_text("import shop\n")
    config = WARM.model_copy(update={"env": {**WARM.env, "PYTHONPATH": "/workspace"}})
    assert task.workspace.workdir == "/workspace"
    prepared = PreparedVerifier(task, ORACLE, config, trusted=False)
    prepared.wait()
    assert prepared.verify(GOLD).resolved


def test_no_sandbox_of_an_agent_becomes_one_of_the_verifier(task: Task) -> None:
    agents: set[str] = set()
    verdicts: set[str] = set()
    for _ in range(2):
        with open_sandbox(task, WARM, trusted=False) as sandbox:
            agents.add(namespace(sandbox.run(["readlink", "/proc/self/ns/pid"]).output))
        verdicts.add(namespace(verify(task, ORACLE, GOLD, WARM, trusted=False).run.result.output))
    assert agents
    assert not agents & verdicts


def test_what_goes_wrong_while_it_is_prepared_is_raised_by_the_verdict(task: Task, tmp_path: Path) -> None:
    gone = task.model_copy(update={"workspace": WorkspaceSpec(path=str(tmp_path / "gone"))})
    with pytest.raises(TaskError, match="not a folder"):
        PreparedVerifier(gone, ORACLE, WARM, trusted=False).verify(GOLD)
    unfit = make_patch({"shop.py": (b"def triple(n):\n    pass\n", CLEAN)})
    with pytest.raises(TaskError, match="shop"):
        PreparedVerifier(task, ORACLE, WARM, trusted=False).verify(unfit)


def test_one_that_is_not_needed_goes_back_to_its_pool(task: Task) -> None:
    PreparedVerifier(task, ORACLE, WARM, trusted=False).close()
    ready = PreparedVerifier(task, ORACLE, WARM, trusted=False)
    ready.wait()
    ready.close()
    ready.close()
    with pytest.raises(SandboxError):
        ready.verify(GOLD)
    assert verify(task, ORACLE, GOLD, WARM, trusted=False).resolved


def test_an_episode_prepares_its_verdict_and_may_submit_twice(task: Task) -> None:
    env = DebugEnv(task, oracle=ORACLE, tools=("bash", "rewrite", "submit"), sandbox=WARM, trusted=False)
    try:
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
    finally:
        env.close()
